package sidecar

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/zonefile"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
)

// unreachableMemory is for how long named does not try a primary again.
const unreachableMemory = 10 * time.Minute

// A primary may take firstDialTimeout to accept a connection, then twice as long, at last lastDialTimeout. TCP sends a lost request for a
// connection again after a second, and in vain if it was lost for want of a route to a server that had just started.
const (
	firstDialTimeout = 200 * time.Millisecond
	lastDialTimeout  = 4 * firstDialTimeout
)

// retransferZone orders named to transfer a whole zone. named 9.18 remembers a primary that refused two connections as
// unreachable for ten minutes, whatever it is asked to do, but by the pair of addresses: so a zone that was added here asks
// from another source than before. That is the pod's address, none in particular, or a port of its own if the others are
// still remembered. It is not asked to while no primary accepts connections, which would spoil the new source as well. While
// a question to a primary is under way, named takes no order, and repeats a question that got lost only after five seconds: so
// each order changes the list of primaries that named has, which ends the question. A transfer under way of which nothing comes any more
// is ended, too, where named can do that (9.20): its connection may lead to a primary that has gone.
func (s *server) retransferZone(w http.ResponseWriter, r *http.Request) error {
	name, unlock, err := s.lockZone(r)
	if err != nil {
		return err
	}
	defer unlock()
	zone, err := s.zones.LoadDescription(name)
	if err == nil && zone.Type == bindcar.Secondary {
		err = s.changeSource(context.WithoutCancel(r.Context()), zone)
	}
	if ignoreNotFound(err) != nil {
		return err
	}
	command := "retransfer "
	if s.transfers.isStuck(r.Context(), name) {
		command += "-force "
	}
	command += name
	text, err := s.control.Command(r.Context(), command)
	if err != nil {
		return err
	}
	klog.FromContext(r.Context()).Info("zone command", "zone", name, "command", command, "source", zone.TransferSource)
	respondSuccess(w, http.StatusOK, command, text)
	return nil
}

// changeSource has a secondary transfer from its other source, and end what it asks a primary at present.
func (s *server) changeSource(ctx context.Context, zone zonefile.Description) error {
	source, err := dialAny(ctx, zone.Primaries)
	if err != nil {
		return httperror.New(http.StatusFailedDependency, "no primary accepts connections", err.Error())
	}
	shown, err := s.control.Command(ctx, "showzone "+zone.Name)
	if err != nil {
		return err
	}
	zone.PrimariesTwice = countPrimaries(shown) <= len(zone.Primaries)
	left, ok := s.leftDefaultSource.Load(zone.Name)
	switch {
	case zone.TransferSource == "":
		s.leftDefaultSource.Store(zone.Name, time.Now())
		zone.TransferSource = source
	case ok && time.Since(left.(time.Time)) < unreachableMemory:
		zone.TransferSource = fmt.Sprintf("%s port %d", source, 20000+rand.IntN(10000)) //nolint:gosec // no secret
	default:
		zone.TransferSource = ""
	}
	if err := s.modifyZone(ctx, &zone); err != nil {
		return err
	}
	if err := s.zones.SaveDescription(zone); err != nil { // as on a full disk, which keeps nobody from transferring the zone
		klog.FromContext(ctx).Error(err, "the source of transfers is not saved", "zone", zone.Name)
	}
	return nil
}

// countPrimaries counts the entries in the list of primaries in a clause.
func countPrimaries(clause string) int {
	_, list, _ := strings.Cut(clause, "primaries {")
	list, _, _ = strings.Cut(list, "}")
	return strings.Count(list, ";")
}

// dialAny is the own address of a connection to the first primary that accepts one.
func dialAny(ctx context.Context, primaries []string) (source string, err error) {
	var errs []error
	for _, entry := range primaries {
		server, err := clause.ParseServer(entry)
		if err != nil {
			return "", err
		}
		if server.Port() == 0 {
			server = netip.AddrPortFrom(server.Addr(), clause.Port)
		}
		conn, err := dialPatiently(ctx, server.String())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		defer func() { _ = conn.Close() }()
		local, err := netip.ParseAddrPort(conn.LocalAddr().String())
		return local.Addr().Unmap().String(), err
	}
	return "", errors.Join(errs...)
}

// dialPatiently connects to a server that may not answer at once.
func dialPatiently(ctx context.Context, server string) (conn net.Conn, err error) {
	for timeout := firstDialTimeout; timeout <= lastDialTimeout; timeout *= 2 {
		dialer := net.Dialer{Timeout: timeout}
		conn, err = dialer.DialContext(ctx, "tcp", server)
		if problem := net.Error(nil); !errors.As(err, &problem) || !problem.Timeout() {
			return conn, err
		}
	}
	return nil, err
}

// isOwnAddress reports whether an address is one of this pod's, which may have had another in a former life.
func isOwnAddress(source string) bool {
	source, _, _ = strings.Cut(source, " ")
	addrs, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(addrs, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap().String() == source
	})
}

package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
)

// keyRoles are the roles that a server can have keys of.
var keyRoles = []clause.KeyRole{clause.KeyUpdate, clause.KeyTransfer}

// tsigKeys knows the names of named's TSIG keys, never the keys themselves.
type tsigKeys struct {
	namesDir string
	control  *rndc.Client
	// dnsPort is where named answers DNS.
	dnsPort int
}

// readNames reads the names of the keys that named should have; none when it needs none in the role.
func (k *tsigKeys) readNames(role clause.KeyRole) (names layout.KeyNames, err error) {
	file := filepath.Join(k.namesDir, string(role), layout.KeyNamesEntry)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return names, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &names)
	}
	if err != nil {
		return names, fmt.Errorf("reading the names of the %s keys: %w", role, err)
	}
	return names, nil
}

// ringRevisions are the revisions of all key rings, to compare with earlier ones.
func (k *tsigKeys) ringRevisions() (all [2]string) {
	for i, role := range keyRoles {
		if names, err := k.readNames(role); err == nil {
			all[i] = names.Revision
		}
	}
	return all
}

// transferKey is the name of the key to sign transfers and NOTIFYs with. Every server has loaded it by then.
func (k *tsigKeys) transferKey() (string, error) {
	names, err := k.readNames(clause.KeyTransfer)
	if err == nil && names.Active == "" {
		err = fmt.Errorf("%s names no transfer key", k.namesDir)
	}
	return names.Active, err
}

// checkUpdateKey rejects the name of a key that may not update: named would accept it and refuse every update later.
func (k *tsigKeys) checkUpdateKey(name string) error {
	names, err := k.readNames(clause.KeyUpdate)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(names.Accepted, func(known string) bool {
		return strings.EqualFold(strings.TrimSuffix(known, "."), strings.TrimSuffix(name, "."))
	}) {
		return httperror.BadRequest("updateKeyName", fmt.Errorf("this server has no key %q", name))
	}
	return nil
}

var tsigLine = regexp.MustCompile(`(?m)type "static"; key "([^"]+)";`)

// loadedNames are the keys that named has, by role. A ring is identified by its revision, which is the name of a key as well: key files
// of another version would have another.
func (k *tsigKeys) loadedNames(ctx context.Context) (loaded map[string][]string, complete bool, err error) {
	has, err := k.listKeys(ctx)
	if err != nil {
		return nil, false, err
	}
	loaded, complete = map[string][]string{}, true
	for _, role := range keyRoles {
		names, err := k.readNames(role)
		if err == nil && names.Revision != "" {
			var is bool
			if is, err = has(names.Revision); is {
				loaded[string(role)] = names.Accepted
			} else {
				complete = false
			}
		}
		if err != nil {
			return nil, false, err
		}
	}
	return loaded, complete, nil
}

// listKeys returns what tells whether named has a key. BIND 9.20 lists none, and is asked about each.
func (k *tsigKeys) listKeys(ctx context.Context) (has func(name string) (bool, error), err error) {
	text, err := k.control.Command(ctx, "tsig-list")
	if err != nil {
		if strings.Contains(err.Error(), "unknown command") {
			return func(name string) (bool, error) { return k.knowsKey(ctx, name) }, nil
		}
		return nil, err
	}
	all := map[string]bool{}
	for _, found := range tsigLine.FindAllStringSubmatch(text, -1) {
		all[strings.TrimSuffix(found[1], ".")] = true
	}
	return func(name string) (bool, error) { return all[strings.TrimSuffix(name, ".")], nil }, nil
}

// knowsTimeout is how long named may take to say whether it knows a key.
const knowsTimeout = 2 * time.Second

// knowsKey asks named whether it has a key, without the key's secret: a request that is signed with another one is answered BADSIG if it
// does, BADKEY if not (RFC 8945 section 5.2).
func (k *tsigKeys) knowsKey(ctx context.Context, name string) (bool, error) {
	var errs []error
	for _, address := range k.ownAddresses() {
		request := new(dns.Msg).SetQuestion(".", dns.TypeSOA)
		request.SetTsig(dns.Fqdn(name), dns.Fqdn(rndc.DefaultAlgorithm), 300, time.Now().Unix())
		client := dns.Client{Net: "tcp", Timeout: knowsTimeout, TsigSecret: map[string]string{dns.Fqdn(name): "bm8gc2VjcmV0"}}
		reply, _, err := client.ExchangeContext(ctx, request, address)
		var says uint16
		if reply != nil && reply.IsTsig() != nil {
			says = reply.IsTsig().Error
		}
		switch {
		case says == dns.RcodeBadSig:
			return true, nil
		case says == dns.RcodeBadKey:
			return false, nil
		case err == nil:
			err = fmt.Errorf("named answers %s", dns.RcodeToString[reply.Rcode])
		}
		errs = append(errs, fmt.Errorf("asking %s about a key: %w", address, err))
	}
	return false, errors.Join(errs...)
}

// ownAddresses are where named may listen: on loopback, unless listenOn says otherwise, or on the pod's addresses.
func (k *tsigKeys) ownAddresses() []string {
	port := strconv.Itoa(k.dnsPort)
	all := []string{net.JoinHostPort("127.0.0.1", port)}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return all
	}
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && !prefix.Addr().IsLoopback() && !prefix.Addr().IsLinkLocalUnicast() {
			all = append(all, net.JoinHostPort(prefix.Addr().Unmap().String(), port))
		}
	}
	return all
}

// errKeysPending says that the files with the keys have yet to reach named's container.
var errKeysPending = errors.New("named has not loaded the present keys")

// ensureLoaded makes named read its configuration again when its keys have changed. Nothing is restarted.
func (k *tsigKeys) ensureLoaded(ctx context.Context) error {
	_, complete, err := k.loadedNames(ctx)
	if err != nil || complete {
		return err
	}
	if _, err := k.control.Command(ctx, "reconfig"); err != nil {
		return err
	}
	if _, complete, err = k.loadedNames(ctx); err == nil && !complete {
		err = errKeysPending
	}
	if err == nil {
		klog.FromContext(ctx).Info("keys loaded")
	}
	return err
}

// signingTransferKey is the transfer key that the clauses of all zones name; empty while one names another.
func (s *server) signingTransferKey() (string, error) {
	key, err := s.tsigKeys.transferKey()
	if err != nil {
		return "", err
	}
	zones, damaged, err := s.zones.LoadDescriptions()
	if err != nil || len(damaged) > 0 {
		return "", err
	}
	for _, zone := range zones {
		if zone.TransferKey != key {
			return "", nil
		}
	}
	return key, nil
}

func (s *server) getServerKeys(w http.ResponseWriter, r *http.Request) error {
	loaded, _, err := s.tsigKeys.loadedNames(r.Context())
	if err != nil {
		return err
	}
	signing, err := s.signingTransferKey()
	if err != nil {
		return err
	}
	httperror.WriteJSON(w, http.StatusOK, bindcar.ServerKeys{Loaded: loaded, Signing: signing})
	return nil
}

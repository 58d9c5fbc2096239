package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/byquery"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// A secondary takes its increments from whichever primary it asks. When primaries were apart, they may have passed through
// one serial with different content, and what a secondary took from one and then from another adds up to content that no
// primary has, on the right serial. After such a time the content of each secondary is read once, in whole, and compared.

// errForeignContent is a secondary that others run and that has the primaries' serial with other content.
var errForeignContent = fmt.Errorf("%w: it holds other data than they on their serial; have it transfer the whole zone", host.ErrTransfer)

// secondarySync is what a pass does to the secondaries.
type secondarySync struct {
	zonePass
	primaries []*primary
	// serial is that of the primaries that the server follows, 0 when it is not known.
	serial uint32
	paused bool
}

// forServer returns what is done to a server of the zone: what others write to as well has the serial of its own primary.
func (s secondarySync) forServer(server observe.Server) secondarySync {
	if !server.Shared {
		if s.isSharedOnly() {
			s.serial = 0
		}
		s.primaries = slices.DeleteFunc(slices.Clone(s.primaries), func(q *primary) bool { return q.server.Shared })
		return s
	}
	s.serial = 0
	s.primaries = slices.DeleteFunc(slices.Clone(s.primaries), func(q *primary) bool {
		return !q.server.Shared || q.server.Provider != server.Provider
	})
	for _, q := range s.primaries {
		if q.err == nil {
			s.serial = q.seen.Serial
		}
	}
	return s
}

// syncSecondaries makes sure that every secondary has the zone and follows its primaries. It returns the outcome of every
// server.
func (p zonePass) syncSecondaries(ctx context.Context, primaries []*primary, event *statuswriter.SyncCompleted) []statuswriter.ServerOutcome {
	s := secondarySync{zonePass: p, primaries: primaries, serial: event.Serial, paused: event.Paused}
	outcomes := newOutcomes(p.servers)
	var wg sync.WaitGroup
	for i := range outcomes {
		out := &outcomes[i]
		if out.Role == observe.Primary {
			s.forServer(out.Server).completePrimary(out)
			continue
		}
		known := p.state.secondary(podOf(out.Server))
		wg.Go(func() {
			s.forServer(out.Server).syncSecondary(ctx, out, known)
			out.SilentSince = known.noteAnswer(out.Serial != 0 || out.Addr.IsValid() && out.Err == nil, s.now())
		})
	}
	wg.Wait()
	return outcomes
}

func (s secondarySync) completePrimary(out *statuswriter.ServerOutcome) {
	for _, q := range s.primaries {
		if podOf(q.server) == podOf(out.Server) {
			out.Serial, out.Err = q.seen.Serial, q.err
			out.Current = q.err == nil && q.seen.Serial == s.serial && s.serial != 0
		}
	}
}

// syncSecondary leaves alone a secondary that has the serial of the pass, and its content where that may differ. Serials
// are compared for equality: a secondary that is ahead is as wrong as one that is behind (RFC 1996 and the trap of a
// recreated zone).
func (s secondarySync) syncSecondary(ctx context.Context, out *statuswriter.ServerOutcome, known *secondaryState) {
	if !out.Addr.IsValid() || s.serial == 0 {
		return
	}
	key, err := s.transferKey(ctx, out.Server)
	if err != nil {
		out.Err = err
		return
	}
	seen := s.serialOf(ctx, out.Server, key)
	if seen.Err == nil && seen.Authoritative {
		var evicted bool
		if evicted, out.Err = s.evictOther(ctx, out.Server); out.Err != nil {
			return
		}
		seen.Authoritative = !evicted
	}
	out.Serial = seen.Serial
	switch {
	case seen.Err != nil: // It did not answer, or not with its key.
		if out.Err = seen.Err; seen.Unverified {
			_, secret := s.secretsOf(out.Server)
			s.keys.Invalidate(secret, key)
		}
	case seen.Authoritative && seen.Serial == s.serial:
		out.Current, out.Err = s.verify(ctx, out.Server, known)
		if out.Current && known.noteCurrent(s.serial) {
			log.FromContext(ctx).Info("zone transfer completed", "zone", s.zone.Spec.ZoneName, "server", out.Pod, "serial", s.serial)
		}
	case s.paused:
	case isForeignServer(out.Server):
		out.Err = s.awaitForeign(ctx, out.Server, known, seen)
	case !seen.Authoritative:
		if out.Err = s.createOnSecondary(ctx, out.Server); bindcar.IsExists(out.Err) {
			// The zone is there and has no data yet: the transfer is under way, or has to be started.
			var evicted bool
			if evicted, out.Err = s.evictOther(ctx, out.Server); out.Err == nil && !evicted {
				out.Err = s.hastenTransfer(ctx, out.Server, known, seen)
			}
		}
	default:
		if out.Err = s.demote(ctx, out.Server); out.Err == nil {
			out.Err = s.hastenTransfer(ctx, out.Server, known, seen)
		}
	}
}

// notifySecondary sends a NOTIFY that the zone changed, beside what BIND's own primaries send.
func (s secondarySync) notifySecondary(ctx context.Context, server observe.Server) error {
	key, err := s.transferKey(ctx, server)
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("zone transfer triggered", "zone", s.zone.Spec.ZoneName, "server", server.Pod, "serial", s.serial)
	return s.sendNotify(ctx, server.Addr, s.dnsName(), s.serial, key)
}

// verify reports whether a secondary that has the serial of the pass has the primaries' content too. It reads that only when
// something can have gone wrong since it did, and repairs what it finds.
func (s secondarySync) verify(ctx context.Context, server observe.Server, known *secondaryState) (same bool, err error) {
	if verified, _ := s.state.verified.Load(podOf(server)); verified == true || len(s.primaries) < 2 || s.paused {
		return true, nil
	}
	want, err := s.primaryContent(ctx)
	if err != nil {
		return false, err
	}
	key, err := s.transferKey(ctx, server)
	if err != nil {
		return false, err
	}
	if server.ReadBy == v1beta1.ReadByQuery {
		return s.verifyByQuery(ctx, server, key, want)
	}
	have := s.dns.ObserveAnew(ctx, server.Peer(), s.asked(), key)
	switch {
	case have.Err != nil:
		return false, have.Err
	case have.Mirror == nil || have.Serial != want.SOA.Serial:
		return false, byquery.ErrChanged
	case !have.Mirror.SameContent(want) && isForeignServer(server):
		return false, errForeignContent
	case !have.Mirror.SameContent(want):
		return false, s.hastenTransfer(ctx, server, known, have)
	}
	s.state.verified.Store(podOf(server), true)
	return true, nil
}

// verifyByQuery is verify for a secondary that is read by query: each pass asks it for some of what the primaries hold. What it has
// beside that is not known.
func (s secondarySync) verifyByQuery(ctx context.Context, server observe.Server, key *wire.Key, want *observe.Mirror) (same bool, err error) {
	progress, _ := s.state.verified.LoadOrStore(podOf(server), &byquery.Comparison{})
	err = progress.(*byquery.Comparison).Continue(ctx, s.askServer(server, key), want)
	s.dns.ForgetZone(server.Peer(), s.asked())
	switch {
	case errors.Is(err, byquery.ErrDiffers):
		return false, errForeignContent
	case err != nil:
		return false, err
	}
	s.state.verified.Store(podOf(server), true)
	return true, nil
}

// primaryContent returns the content of the primaries on the serial of the pass.
func (s secondarySync) primaryContent(ctx context.Context) (*observe.Mirror, error) {
	for _, q := range s.primaries {
		if q.err != nil {
			continue
		}
		// What was seen in this pass is at hand, unless the pass found all at rest.
		if seen := s.observe(ctx, q.server, q.transferKey); seen.Mirror != nil && seen.Serial == s.serial {
			return seen.Mirror, nil
		}
	}
	return nil, byquery.ErrChanged
}

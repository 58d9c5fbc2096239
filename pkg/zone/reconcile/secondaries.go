package reconcile

import (
	"context"
	"errors"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// A secondary takes its increments from whichever primary it asks. When primaries were apart, they may have passed through
// one serial with different content, and what a secondary took from one and then from another adds up to content that no
// primary has, on the right serial. After such a time the content of each secondary is read once, in whole, and compared.

// secondarySync is what a pass does to the secondaries.
type secondarySync struct {
	zonePass
	primaries []*primary
	// serial is that of the primaries that the server follows, 0 when it is not known.
	serial uint32
	paused bool
}

// onLine returns what is done to a server that follows the primaries of a line.
func (s secondarySync) onLine(line string) secondarySync {
	s.primaries = slices.DeleteFunc(slices.Clone(s.primaries), func(q *primary) bool { return q.host.Line() != line })
	if line == "" && !s.hasOtherLinesOnly() {
		return s
	}
	s.serial = 0
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
	for i, h := range p.hosts {
		out := &outcomes[i]
		if out.Role == observe.Primary {
			s.onLine(h.Line()).completePrimary(h, out)
			continue
		}
		known := p.state.secondary(h.ID())
		wg.Go(func() {
			s.onLine(h.Line()).syncSecondary(ctx, h.(host.Secondary), out, known)
			out.SilentSince = known.NoteAnswer(out.Serial != 0 || out.Addr.IsValid() && out.Err == nil, s.now())
		})
	}
	wg.Wait()
	return outcomes
}

func (s secondarySync) completePrimary(h host.Host, out *statuswriter.ServerOutcome) {
	for _, q := range s.primaries {
		if q.host.ID() == h.ID() {
			out.Serial, out.Err = q.seen.Serial, q.err
			out.Current = q.err == nil && q.seen.Serial == s.serial && s.serial != 0
		}
	}
}

// syncSecondary leaves alone a secondary that has the serial of the pass, and its content where that may differ. Serials
// are compared for equality: a secondary that is ahead is as wrong as one that is behind (RFC 1996 and the trap of a
// recreated zone).
func (s secondarySync) syncSecondary(ctx context.Context, h host.Secondary, out *statuswriter.ServerOutcome, known *host.Follower) {
	if !out.Addr.IsValid() || s.serial == 0 {
		return
	}
	if out.Err = h.SignIn(ctx); out.Err != nil {
		return
	}
	seen := h.Serial(ctx)
	if seen.Err == nil && seen.Authoritative {
		var evicted bool
		if evicted, out.Err = h.Claim(ctx); out.Err != nil {
			return
		}
		seen.Authoritative = !evicted
	}
	out.Serial = seen.Serial
	switch {
	case seen.Err != nil: // It did not answer, or not with its key.
		if out.Err = seen.Err; seen.Unverified {
			h.ForgetKeys()
		}
	case seen.Authoritative && seen.Serial == s.serial:
		out.Current, out.Err = s.verify(ctx, h, known)
		if out.Current && known.NoteCurrent(s.serial) {
			log.FromContext(ctx).Info("zone transfer completed", "zone", s.zone.Spec.ZoneName, "server", out.Pod, "serial", s.serial)
		}
	case s.paused:
	default:
		out.Err = h.Follow(ctx, seen, s.serial, known)
	}
}

// verify reports whether a secondary that has the serial of the pass has the primaries' content too. It reads that only when
// something can have gone wrong since it did, and repairs what it finds.
func (s secondarySync) verify(ctx context.Context, h host.Secondary, known *host.Follower) (same bool, err error) {
	if len(s.primaries) < 2 || s.paused {
		return true, nil
	}
	progress := s.state.verificationOf(h.ID())
	if progress.isComplete {
		return true, nil
	}
	want, err := s.primaryContent(ctx)
	if err != nil {
		return false, err
	}
	seen, err := h.Compare(ctx, want, &progress.compared)
	switch {
	case errors.Is(err, host.ErrDiffers):
		return false, h.Repair(ctx, seen, s.serial, known)
	case err != nil:
		return false, err
	}
	*progress = verification{isComplete: true}
	return true, nil
}

// primaryContent returns the content of the primaries on the serial of the pass.
func (s secondarySync) primaryContent(ctx context.Context) (*observe.Mirror, error) {
	for _, q := range s.primaries {
		if q.err != nil {
			continue
		}
		// What was seen in this pass is at hand, unless the pass found all at rest.
		if seen := q.host.Observe(ctx); seen.Mirror != nil && seen.Serial == s.serial {
			return seen.Mirror, nil
		}
	}
	return nil, host.ErrChanged
}

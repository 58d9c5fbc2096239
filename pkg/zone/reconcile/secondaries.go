package reconcile

import (
	"context"
	"errors"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/primary"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// A secondary takes its increments from whichever primary it asks. When primaries were apart, they may have passed through
// one serial with different content, and what a secondary took from one and then from another adds up to content that no
// primary has, on the right serial. After such a time the content of each secondary is read once, in whole, and compared.

// followed is what servers follow: primaries, and their serial, if it is known. Nothing is changed while it is paused.
type followed struct {
	primaries []primary.State
	serial    uint32
	isKnown   bool
	paused    bool
}

// followedBy returns what a server follows of all that servers of the zone do. The serial is that of the primaries on the zone's own line.
func (p zonePass) followedBy(h host.Host, all followed) followed {
	f := followed{serial: all.serial, isKnown: all.isKnown, paused: all.paused}
	for _, q := range all.primaries {
		if q.At.Line == h.At().Line {
			f.primaries = append(f.primaries, q)
		}
	}
	if h.At().Line == "" && !p.hasOtherLinesOnly() {
		return f
	}
	f.serial, f.isKnown = 0, false
	for _, q := range f.primaries {
		if q.Err == nil {
			f.serial, f.isKnown = q.Seen.Serial, true
		}
	}
	return f
}

// reconcileSecondaries makes sure that every secondary has the zone and follows its primaries. It returns the outcome of every server.
func (p zonePass) reconcileSecondaries(ctx context.Context, all followed) []statuswriter.ServerOutcome {
	outcomes := make([]statuswriter.ServerOutcome, len(p.hosts))
	var wg sync.WaitGroup
	for i, h := range p.hosts {
		f := p.followedBy(h, all)
		if h.At().Role == observe.Primary {
			outcomes[i] = f.outcomeOf(h)
			continue
		}
		known := p.state.secondary(h.At().ID)
		wg.Go(func() {
			out := p.reconcileSecondary(ctx, h.(host.Secondary), f, known)
			out.SilentSince = known.NoteAnswer(out.HasZone || out.Addr.IsValid() && out.Err == nil, p.now())
			outcomes[i] = out
		})
	}
	wg.Wait()
	return outcomes
}

// outcomeOf is the outcome of a primary.
func (f followed) outcomeOf(h host.Host) statuswriter.ServerOutcome {
	out := newOutcome(h)
	for _, q := range f.primaries {
		if q.At.ID == h.At().ID {
			out.Serial, out.HasZone, out.Err = q.Seen.Serial, q.Seen.Authoritative, q.Err
			out.Current = q.Err == nil && f.isKnown && q.Seen.Serial == f.serial
		}
	}
	return out
}

// reconcileSecondary leaves alone a secondary that has the serial that it follows, and its content where that may differ. Serials
// are compared for equality: a secondary that is ahead is as wrong as one that is behind (RFC 1996 and the trap of a
// recreated zone).
func (p zonePass) reconcileSecondary(ctx context.Context, h host.Secondary, f followed, known *host.Follower) statuswriter.ServerOutcome {
	out := newOutcome(h)
	if !out.Addr.IsValid() || !f.isKnown {
		return out
	}
	if out.Err = h.SignIn(ctx); out.Err != nil {
		return out
	}
	seen := h.Serial(ctx)
	if seen.Err == nil && seen.Authoritative {
		var evicted bool
		if evicted, out.Err = h.Claim(ctx); out.Err != nil {
			return out
		}
		seen.Authoritative = !evicted
	}
	out.Serial, out.HasZone = seen.Serial, seen.Authoritative
	switch {
	case seen.Err != nil: // It did not answer, or not with its key.
		if out.Err = seen.Err; seen.Unverified {
			h.ForgetKeys()
		}
	case seen.Authoritative && seen.Serial == f.serial:
		if out.Current, out.Err = p.verify(ctx, h, f, known); out.Current && known.NoteCurrent(f.serial) {
			log.FromContext(ctx).Info("zone transfer completed", "zone", p.zone.Spec.ZoneName, "server", out.Pod, "serial", f.serial)
		}
	case f.paused:
	default:
		out.Err = h.Follow(ctx, seen, f.serial, known)
	}
	return out
}

// verify reports whether a secondary that has the serial of its primaries has their content too. It reads that only when
// something can have gone wrong since it did, and repairs what it finds.
func (p zonePass) verify(ctx context.Context, h host.Secondary, f followed, known *host.Follower) (same bool, err error) {
	progress := p.state.verificationOf(h.At().ID)
	if len(f.primaries) < 2 || f.paused || progress.isComplete {
		return true, nil
	}
	want, err := f.content(ctx)
	if err != nil {
		return false, err
	}
	seen, err := h.Compare(ctx, want, &progress.compared)
	switch {
	case errors.Is(err, host.ErrDiffers):
		return false, h.Repair(ctx, seen, f.serial, known)
	case err != nil:
		return false, err
	}
	*progress = verification{isComplete: true}
	return true, nil
}

// content returns the content of the primaries on their serial.
func (f followed) content(ctx context.Context) (*observe.Mirror, error) {
	for _, q := range f.primaries {
		if q.Err != nil {
			continue
		}
		// What was seen in this pass is at hand, unless the pass found all at rest.
		if seen := q.Host.Observe(ctx); seen.Mirror != nil && seen.Serial == f.serial {
			return seen.Mirror, nil
		}
	}
	return nil, host.ErrChanged
}

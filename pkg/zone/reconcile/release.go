package reconcile

import (
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/primary"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// releaseTimeout is how long the deletion of an object waits for secondaries that hold its data and do not follow.
const releaseTimeout = 30 * time.Second

// release returns the objects that have no data in the zone any more. One that is deleted waits for the secondaries, so that it is
// known until then which data was its own.
func (p zonePass) release(servers []statuswriter.ServerOutcome, isStuck func(rrset.Key) bool) []source.Object {
	zone := p.state.content
	zone.ForgetLeftovers(func(serial uint32) bool {
		for i, out := range servers {
			if p.hosts[i].At().Restores && mayHoldOlder(out, serial) {
				return false
			}
		}
		return true
	})
	since := p.now().Add(-releaseTimeout)
	mayBeLeft := func(key rrset.Key) bool { return isStuck(key) || zone.IsLeftoverSince(key, since) }
	isDeleted := func(o source.Object) bool { return !o.GetDeletionTimestamp().IsZero() }
	isAlive := func(o source.Object) bool { return !isDeleted(o) }
	return append(zone.TakeReleasedIf(isDeleted, mayBeLeft), zone.TakeReleasedIf(isAlive, isStuck)...)
}

// mayHoldOlder reports whether a server might hold an older version than that of a serial.
func mayHoldOlder(s statuswriter.ServerOutcome, serial uint32) bool {
	isEmpty := s.Err == nil && !s.HasZone
	return !s.Current && !isEmpty && (!s.HasZone || rrset.SerialLess(s.Serial, serial))
}

// moveTimeout is how long an object that moves to another zone waits for a primary of this one that cannot be brought along.
const moveTimeout = 30 * time.Second

// holdMoves returns the objects that another zone takes and that have to wait, each with what for, because primaries failed.
// They are released without those in the end, if there is another one: it has the latest serial, and a primary that
// returns takes over its content.
func (p zonePass) holdMoves(failed []primary.State, all int, isStuck func(rrset.Key) bool) (released []source.Object, held map[source.ObjectKey]string) {
	moves := func(o source.Object) bool {
		return o.GetDeletionTimestamp().IsZero() && len(p.zones.Placement(o).Taken) > 0
	}
	last := slices.MaxFunc(failed, func(a, b primary.State) int {
		return p.state.failingSince[a.At.ID].Compare(p.state.failingSince[b.At.ID])
	})
	deadline := p.state.failingSince[last.At.ID].Add(moveTimeout)
	until := "a primary of that zone answers"
	if len(failed) < all {
		if !p.now().Before(deadline) {
			released = p.state.content.TakeReleasedIf(moves, isStuck)
		}
		until = deadline.UTC().Format(time.RFC3339)
	}
	held = map[source.ObjectKey]string{}
	for key, o := range p.state.content.Leaving() {
		if moves(o) {
			held[key] = status.MovesLater(p.zones.Placement(o).Taken[0].String(), until, last.At.Pod, p.zone.Spec.ZoneName, last.Err)
		}
	}
	return released, held
}

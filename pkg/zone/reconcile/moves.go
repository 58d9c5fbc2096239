package reconcile

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// moveTimeout is how long an object that moves to another zone waits for a primary of this one that cannot be brought along.
const moveTimeout = 30 * time.Second

// holdMoves returns the objects that another zone takes and that have to wait, each with what for, because primaries failed.
// They are released without those in the end, if there is another one: it has the latest serial, and a primary that
// returns takes over its content.
func (p zonePass) holdMoves(failed []primary, all int, isStuck func(rrset.Key) bool) (released []source.Object, held map[source.ObjectKey]string) {
	moves := func(o source.Object) bool {
		return o.GetDeletionTimestamp().IsZero() && len(p.zones.Placement(o).Taken) > 0
	}
	last := slices.MaxFunc(failed, func(a, b primary) int { return p.state.failingSince[a.at.ID].Compare(p.state.failingSince[b.at.ID]) })
	deadline := p.state.failingSince[last.at.ID].Add(moveTimeout)
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
			held[key] = fmt.Sprintf("is about to move to DNSZone %s, which waits until %s: %s of zone %s may still serve it under its former name: %v",
				p.zones.Placement(o).Taken[0], until, last.at.Pod, p.zone.Spec.ZoneName, last.err)
		}
	}
	return released, held
}

// noteFailing remembers since when each primary could not be brought along.
func (s *zoneState) noteFailing(failed []primary, now time.Time) {
	since := map[types.NamespacedName]time.Time{}
	for _, q := range failed {
		pod := q.at.ID
		if since[pod] = now; !s.failingSince[pod].IsZero() {
			since[pod] = s.failingSince[pod]
		}
	}
	s.failingSince = since
}

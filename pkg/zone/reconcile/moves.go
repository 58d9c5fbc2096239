package reconcile

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// moveTimeout is how long an object that moves to another zone waits for a primary of this one that cannot be brought along.
const moveTimeout = 30 * time.Second

// holdMoves adds the objects that another zone takes and that have to wait, each with what for, because primaries failed.
// They are released without those in the end, if there is another one: it has the latest serial, and a primary that
// returns takes over its content.
func (p zonePass) holdMoves(failed []*primary, all int, isStuck func(rrset.Key) bool, event *statuswriter.SyncCompleted) {
	moves := func(o source.Object) bool {
		return o.GetDeletionTimestamp().IsZero() && len(p.zones.Placement(o).Taken) > 0
	}
	last := failed[0]
	for _, q := range failed {
		if p.state.failingSince[q.host.ID()].After(p.state.failingSince[last.host.ID()]) {
			last = q
		}
	}
	deadline := p.state.failingSince[last.host.ID()].Add(moveTimeout)
	until := "a primary of that zone answers"
	if len(failed) < all {
		if !p.now().Before(deadline) {
			event.Released = p.state.content.TakeReleasedIf(moves, isStuck)
		}
		until = deadline.UTC().Format(time.RFC3339)
	}
	event.Held = map[source.ObjectKey]string{}
	for key, o := range p.state.content.Leaving() {
		if moves(o) {
			event.Held[key] = status.MovesLater(p.zones.Placement(o).Taken[0].String(), until, last.server.Pod, p.zone.Spec.ZoneName, last.err)
		}
	}
}

// noteFailing remembers since when each primary could not be brought along.
func (s *zoneState) noteFailing(failed []*primary, now time.Time) {
	since := map[types.NamespacedName]time.Time{}
	for _, q := range failed {
		pod := q.host.ID()
		if since[pod] = now; !s.failingSince[pod].IsZero() {
			since[pod] = s.failingSince[pod]
		}
	}
	s.failingSince = since
}

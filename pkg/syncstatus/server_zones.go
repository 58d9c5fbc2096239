package syncstatus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// PodAnswers is what one pod answered.
type PodAnswers struct {
	// At is when it was asked; zero if it was not.
	At time.Time
	// Version of BIND; empty if the server hides it.
	Version string
	// Sidecar is Ready or a condition's reason; empty if it was not asked.
	Sidecar string
	// Zones are those that the pod should serve.
	Zones []ZoneAnswer
}

// ZoneAnswer is what a pod answered about one zone.
type ZoneAnswer struct {
	// Zone is its DNS name without the final dot.
	Zone string
	observe.Observation
	// Newest is the newest serial of any primary; nil if none is known.
	Newest *uint32
}

// maxServerZones bounds the zones in a row.
const maxServerZones = 20

// serverZones counts zones by state and has the worst of them.
func serverZones(role observe.Role, seen []ZoneAnswer) *syncv1.ServerZones {
	out := &syncv1.ServerZones{}
	all := make([]syncv1.ServerZone, len(seen))
	for i, z := range seen {
		all[i] = serverZone(role, z)
		if all[i].State == syncv1.StateInSync {
			out.InSync++
		} else {
			out.OutOfSync++
		}
	}
	slices.SortFunc(all, func(a, b syncv1.ServerZone) int {
		return cmp.Or(cmp.Compare(severityRank(a.State), severityRank(b.State)), strings.Compare(a.Zone, b.Zone))
	})
	out.Worst = slices.Clip(all[:min(len(all), maxServerZones)])
	return out
}

// severityRank is 0 for the most severe state.
func severityRank(s syncv1.ServerState) int {
	if i := slices.Index(severity, s); i >= 0 {
		return i
	}
	return len(severity)
}

// serverZone is the state of one zone. Primaries are not compared with each other: whether they hold what is declared is part of the
// zone's own SyncStatus.
func serverZone(role observe.Role, z ZoneAnswer) syncv1.ServerZone {
	row := syncv1.ServerZone{Zone: z.Zone}
	if row.State, row.Message = answerState(z.Observation); row.State != "" {
		return row
	}
	if z.Unverified {
		row.State, row.Message = syncv1.StateRefused, "answers queries, but not with its key: "+z.Message()
		return row
	}
	row.State = syncv1.StateInSync
	row.Serial = new(int64(z.Serial))
	if z.Newest == nil {
		return row
	}
	lag := int64(int32(*z.Newest - z.Serial)) //nolint:gosec // wraps as intended (RFC 1982)
	row.SerialLag = &lag
	switch {
	case role == observe.Primary || lag == 0:
	case lag > 0:
		row.State, row.Message = syncv1.StateStale, fmt.Sprintf("serial %d is %d behind the primaries' %d", z.Serial, lag, *z.Newest)
	default:
		row.State, row.Message = syncv1.StateDivergent, fmt.Sprintf("serial %d is ahead of the primaries' %d: no transfer will repair it", z.Serial, *z.Newest)
	}
	return row
}

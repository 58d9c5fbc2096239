package primary

import (
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
)

// holdBack has the zone's guard decide on what is about to vanish, and compares without what it holds back. What counts is what the zone has:
// the reference. A primary that is brought to that loses nothing of the zone.
func (p Pass) holdBack(compared []State, t target) []State {
	if p.Zone.Paused {
		return compared
	}
	other := false
	_, alone := Split(compared)
	reviewed := slices.DeleteFunc(alone, func(q State) bool { return t.reference != nil || q.Err != nil || q.Seen.Mirror == nil })
	if of := slices.IndexFunc(compared, func(q State) bool { return q.At.ID == t.of }); t.reference != nil && of >= 0 {
		reviewed = compared[of : of+1]
	} else if t.reference != nil {
		_, other = p.Content.Review(t.reference, p.Content.ChangesOf(t.reference), p.Zone.Now())
	}
	for _, q := range reviewed {
		have, lacking := p.Content.OwnChanges(q.Known, q.Seen.Mirror, q.declaredChanges())
		_, held := p.Content.Review(have, lacking, p.Zone.Now())
		other = other || held
	}
	if !other {
		return compared
	}
	again := slices.Clone(compared)
	for i, q := range again {
		if q.Err == nil && q.Seen.Mirror != nil {
			again[i] = p.compare(q, t)
		}
	}
	return again
}

// declaredChanges returns what a primary lacks, without the correction of what somebody else has put there.
func (q State) declaredChanges() plan.Changes {
	if len(q.Drifted) == 0 {
		return q.Lacking
	}
	changes := plan.Changes{Create: q.Lacking.Create, Delete: q.Lacking.Delete}
	for i, set := range q.Lacking.UpdateNew {
		if !slices.ContainsFunc(q.Drifted, func(d Drift) bool { return d.Key == set.Key }) {
			changes.UpdateOld, changes.UpdateNew = append(changes.UpdateOld, q.Lacking.UpdateOld[i]), append(changes.UpdateNew, set)
		}
	}
	return changes
}

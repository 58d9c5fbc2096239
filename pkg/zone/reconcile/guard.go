package reconcile

import (
	"context"
	"fmt"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// holdBack has the zone's guard decide on what is about to vanish, and compares without what it holds back. What counts is what the zone has:
// the reference. A primary that is brought to that loses nothing of the zone.
func (p zonePass) holdBack(compared []primary, t target) []primary {
	if p.isPaused() {
		return compared
	}
	other := false
	_, alone := split(compared)
	reviewed := slices.DeleteFunc(alone, func(q primary) bool { return t.reference != nil || q.err != nil || q.seen.Mirror == nil })
	if of := slices.IndexFunc(compared, func(q primary) bool { return q.at.ID == t.of }); t.reference != nil && of >= 0 {
		reviewed = compared[of : of+1]
	} else if t.reference != nil {
		_, other = p.review(t.reference, p.state.content.ChangesOf(t.reference))
	}
	for _, q := range reviewed {
		_, held := p.review(p.state.content.OwnChanges(q.known, q.seen.Mirror, q.declaredChanges()))
		other = other || held
	}
	if !other {
		return compared
	}
	again := slices.Clone(compared)
	for i, q := range again {
		if q.err == nil && q.seen.Mirror != nil {
			again[i] = p.compare(q, t)
		}
	}
	return again
}

// declaredChanges returns what a primary lacks, without the correction of what somebody else has put there.
func (q primary) declaredChanges() plan.Changes {
	if len(q.drifted) == 0 {
		return q.lacking
	}
	changes := plan.Changes{Create: q.lacking.Create, Delete: q.lacking.Delete}
	for i, set := range q.lacking.UpdateNew {
		if !slices.ContainsFunc(q.drifted, func(d drift) bool { return d.key == set.Key }) {
			changes.UpdateOld, changes.UpdateNew = append(changes.UpdateOld, q.lacking.UpdateOld[i]), append(changes.UpdateNew, set)
		}
	}
	return changes
}

// review has the zone's guard decide on the changes of one copy of the zone.
func (p zonePass) review(have plan.Content, lacking plan.Changes) (want plan.Content, other bool) {
	return p.state.content.Review(have, lacking, p.now())
}

// addHeld adds what the zone's guard holds back.
func (p zonePass) addHeld(event statuswriter.SyncCompleted) statuswriter.SyncCompleted {
	hold := p.state.content.Hold()
	if event.HeldPlan = hold.Plan; hold.Plan == "" {
		return event
	}
	var held []string
	verdict := status.HeldBack(p.zone.Name)
	for key := range hold.Keys() {
		event.Unprogrammed[key] = verdict
		held = append(held, key.String())
	}
	event.Guarded = status.GuardHolds(p.zone, hold.Plan, len(hold.Removed), len(hold.Changed), held)
	if event.Failure.Reason == "" {
		event.Failure = event.Guarded
	}
	return event
}

// dropConfirmation removes the annotation that has confirmed a plan once that is done: the same plan later is another one.
func (p zonePass) dropConfirmation(ctx context.Context, isStuck func(rrset.Key) bool) error {
	if !p.state.content.IsConfirmationDone(isStuck) || p.isPaused() {
		return nil
	}
	if _, err := apply.Metadata(ctx, p.kube, p.zone, apply.Marks{RemoveAnnotations: []string{v1beta1.ConfirmAnnotation}}); err != nil {
		return fmt.Errorf("removing the annotation of the confirmed plan from zone %s/%s: %w", p.zone.Namespace, p.zone.Name, err)
	}
	return nil
}

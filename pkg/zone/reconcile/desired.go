package reconcile

import (
	"cmp"
	"context"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/content"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// declare brings the desired state up to date with the objects that changed, and returns the outcome as far as it is about them. Its
// problem holds if the zone can be brought to its hosts. The error is for objects that could not get their finalizer, that of withdraw, or
// errEnding.
func (p zonePass) declare(ctx context.Context) (declared statuswriter.SyncCompleted, err error) {
	declared = statuswriter.SyncCompleted{
		Zone: p.zone, Arrivals: p.arrivals, Programmed: status.True(status.ReconcileSucceeded, ""), Paused: p.isPaused(),
	}
	zone := p.state.content
	zone.SetPrune(p.zone.Annotations[v1beta1.PruneAnnotation] == "true")
	zone.SetGuard(content.GuardOf(p.zone))
	opts := membership.ContentOptions(p.instances, p.providers)
	opts.Signers = p.zones.Members.SignersOf(p.zone)
	all := !zone.IsBuiltFor(p.zone, opts)
	if all {
		opts.Owns = p.zones.Members.OwnsEndpoints(p.key())
		if err := zone.Rebuild(p.zone, opts); err != nil {
			declared.Programmed = status.False(status.ReconcileFailed, err.Error())
			declared.Failure = declared.Programmed
			return declared, nil
		}
	}
	changed, since := p.zones.Take(p.key(), all)
	declared.Since, declared.Rebuilt = since, all
	if all || len(changed) > 0 || p.lacksProvider() {
		if err := p.checkNamespace(ctx); err != nil {
			zone.Discard() // What was taken is taken again.
			declared.Programmed = status.False(status.ReconcileFailed, err.Error())
			return declared, err
		}
	}
	isRefused := p.refusal != (membership.Refusal{})
	var waiting []source.ObjectKey
	if !isRefused {
		changed, waiting, err = p.addFinalizers(ctx, changed)
	}
	zone.Update(changed, waiting...)
	declared.NameServers = p.state.notePublished(zone.Desired(), len(opts.Servers) > 0, all)
	if !all {
		for _, m := range changed {
			declared.Touched = append(declared.Touched, m.Key)
		}
	}
	declared.Desired, declared.All = zone.Desired(), all
	declared.AlsoSelected = slices.SortedFunc(zone.AlsoSelected(), func(a, b source.ObjectKey) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	declared.OlderZones = p.zones.ZonesDeclaring(declared.AlsoSelected)
	if isRefused {
		return p.refuse(ctx, declared)
	}
	return declared, err
}

// refuse completes what is declared for a zone that is served nowhere. The error is that of withdraw.
func (p zonePass) refuse(ctx context.Context, declared statuswriter.SyncCompleted) (statuswriter.SyncCompleted, error) {
	declared.Programmed = status.False(p.refusal.Reason, p.refusal.Message)
	declared.Failure = declared.Programmed
	declared.Released = p.releaseAll()
	var err error
	declared.Servers, declared.Backends, err = p.withdraw(ctx)
	p.state.content.Unpublish() // When it becomes the one that is served, all its objects need their finalizer.
	return declared, err
}

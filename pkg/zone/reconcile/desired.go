package reconcile

import (
	"cmp"
	"context"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// declare brings the desired state up to date with the objects that changed, and fills in the event's part about them. It
// reports false when there is nothing to work with. The error is for objects that could not get their finalizer, or errEnding.
func (p zonePass) declare(ctx context.Context, event *statuswriter.SyncCompleted) (ready bool, err error) {
	zone := p.state.content
	zone.SetPrune(p.zone.Annotations[v1beta1.PruneAnnotation] == "true")
	servers := membership.NameServers(p.instances)
	all := !zone.IsBuiltFor(p.zone, servers)
	if all {
		opts := source.Options{Servers: servers, Owns: p.zones.Members.OwnsEndpoints(p.key())}
		if err := zone.Rebuild(p.zone, opts); err != nil {
			event.Problem = status.False(status.ReconcileFailed, err.Error())
			event.Failure = event.Problem
			return false, nil
		}
	}
	changed, since := p.zones.Take(p.key(), all)
	event.Since, event.Rebuilt = since, all
	if all || len(changed) > 0 || p.lacksProvider() {
		if err := p.checkNamespace(ctx); err != nil {
			zone.Discard() // What was taken is taken again.
			event.Problem = status.False(status.ReconcileFailed, err.Error())
			return false, err
		}
	}
	refused := p.refusal != (membership.Refusal{})
	if !refused {
		changed, err = p.addFinalizers(ctx, changed)
	}
	zone.Update(changed)
	event.NameServers = p.state.notePublished(zone.Desired(), len(servers) > 0, all)
	if !all {
		for _, m := range changed {
			event.Touched = append(event.Touched, m.Key)
		}
	}
	event.Desired, event.All = zone.Desired(), all
	event.AlsoSelected = slices.SortedFunc(zone.AlsoSelected(), func(a, b source.ObjectKey) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	event.OlderZones = p.zones.ZonesDeclaring(event.AlsoSelected)
	if refused {
		event.Problem = status.False(p.refusal.Reason, p.refusal.Message)
		event.Failure = event.Problem
		event.Released = p.releaseAll()
		event.Servers = p.withdraw(ctx)
		zone.Discard() // When it becomes the one that is served, all its objects need their finalizer.
		return false, err
	}
	return true, err
}

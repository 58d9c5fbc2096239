package zone

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/controller/apply"
	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// finalizePatience is how long the deletion of a zone waits for a server that cannot be reached. A server that comes
// back later loses the zone then: its instance serves only zones that exist.
const finalizePatience = 30 * time.Second

// finalize takes a deleted zone off its servers, lets go of what leaves it and then of the zone. What it selects still is
// let go, or another zone's, once the zone is gone.
func (r *zoneReconciler) finalize(ctx context.Context, zone *v1beta1.DNSZone, s surroundings) (ctrl.Result, error) {
	if controllerutil.ContainsFinalizer(zone, v1beta1.Finalizer) && s.duplicateOf == nil {
		if err := r.removeZone(ctx, zone, s.servers); err != nil {
			if time.Since(zone.DeletionTimestamp.Time) < finalizePatience {
				log.FromContext(ctx).Info("zone is still on a server", "zone", zone.Spec.ZoneName, "reason", err.Error())
				return ctrl.Result{RequeueAfter: time.Second}, nil
			}
			log.FromContext(ctx).Info("zone is let go without its servers", "zone", zone.Spec.ZoneName, "reason", err.Error())
		}
		for _, i := range s.instances {
			r.wake(i.Namespace, i.Name)
		}
	}
	var leaving []source.Object
	for _, m := range r.world.take(membership.KeyOfZone(zone), true) {
		if m.Role == membership.Leaving {
			leaving = append(leaving, m.Object)
		}
	}
	r.writer.Release(membership.KeyOfZone(zone), leaving...)
	_, err := apply.Metadata(ctx, r.client, zone, removeFinalizer)
	return ctrl.Result{}, err
}

// removeZone deletes the zone on every server that has a pod.
func (r *zoneReconciler) removeZone(ctx context.Context, zone *v1beta1.DNSZone, servers []observe.Server) error {
	var group errgroup.Group
	name := source.DNSName(zone)
	for _, server := range servers {
		if !server.Addr.IsValid() {
			continue
		}
		group.Go(func() error {
			err := r.deps.Sidecar.DeleteZone(ctx, fleet.SidecarOf(server), name)
			r.deps.Observer.Forget(server.Addr, name+".")
			if bindcar.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

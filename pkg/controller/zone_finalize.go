package controller

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// finalizePatience is how long the deletion of a zone waits for a server that cannot be reached. A server that comes
// back later loses the zone then: its instance serves only zones that exist.
const finalizePatience = 30 * time.Second

// finalize takes a deleted zone off its servers, lets go of its records and then of the zone.
func (r *zoneReconciler) finalize(ctx context.Context, zone *v1beta1.DNSZone, m members) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(zone, v1beta1.Finalizer) {
		return ctrl.Result{}, nil
	}
	if m.duplicateOf == nil {
		if err := r.removeZone(ctx, zone, m); err != nil {
			if time.Since(zone.DeletionTimestamp.Time) < finalizePatience {
				log.FromContext(ctx).Info("zone is still on a server", "zone", zone.Spec.ZoneName, "reason", err.Error())
				return ctrl.Result{RequeueAfter: time.Second}, nil
			}
			log.FromContext(ctx).Info("zone is let go without its servers", "zone", zone.Spec.ZoneName, "reason", err.Error())
		}
	}
	var group errgroup.Group
	group.SetLimit(marks)
	for _, records := range [][]v1beta1.Record{m.selected, m.leaving} {
		for _, record := range records {
			group.Go(func() error { return r.records.Release(ctx, record, r.now()) })
		}
	}
	if err := group.Wait(); err != nil {
		return ctrl.Result{}, fmt.Errorf("letting go of the records of zone %s/%s: %w", zone.Namespace, zone.Name, err)
	}
	r.wake(m.instances)
	return ctrl.Result{}, syncevent.UpdateMetadata(ctx, r.client, zone, removeFinalizer)
}

// removeZone deletes the zone on every server that has a pod.
func (r *zoneReconciler) removeZone(ctx context.Context, zone *v1beta1.DNSZone, m members) error {
	var group errgroup.Group
	name := source.DNSName(zone)
	for _, server := range m.servers {
		if !server.Addr.IsValid() {
			continue
		}
		group.Go(func() error {
			err := r.deps.Bindcar.DeleteZone(ctx, sidecarOf(server), name)
			r.deps.Observer.Forget(server.Addr, name+".")
			if bindcar.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

// sidecarOf is where the sidecar beside a server listens.
func sidecarOf(s observe.Server) netip.AddrPort {
	return netip.AddrPortFrom(s.Addr.Addr(), named.SidecarPort)
}

func removeFinalizer(o client.Object) { controllerutil.RemoveFinalizer(o, v1beta1.Finalizer) }

// releaseOrphans lets go of the records of a namespace that no zone selects and none holds data of, and tells them so.
func (r *zoneReconciler) releaseOrphans(ctx context.Context, namespace string) error {
	zones, err := r.zones(ctx, namespace)
	if err != nil {
		return err
	}
	var orphans []v1beta1.Record
	err = r.eachRecord(ctx, namespace, func(record v1beta1.Record) {
		if source.ZoneOf(zones, record) == nil && holderOf(record, zones) == nil {
			orphans = append(orphans, record)
		}
	})
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(marks)
	for _, record := range orphans {
		group.Go(func() error { return r.records.Release(ctx, record, r.now()) })
	}
	return group.Wait()
}

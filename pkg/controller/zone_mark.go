package controller

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// marks bounds the metadata writes that run at once.
const marks = 16

// mark puts our finalizer on the zone and on its records, and the zone's name on the records, before anything of them
// goes out: whatever happens later, an object whose data may be in DNS cannot vanish before that data does.
func (r *zoneReconciler) mark(ctx context.Context, zone *v1beta1.DNSZone, m members) error {
	if err := syncevent.UpdateMetadata(ctx, r.client, zone, addFinalizer); err != nil {
		return fmt.Errorf("adding the finalizer to zone %s/%s: %w", zone.Namespace, zone.Name, err)
	}
	if m.duplicateOf != nil {
		return nil
	}
	var group errgroup.Group
	group.SetLimit(marks)
	for _, record := range m.selected {
		group.Go(func() error {
			return syncevent.UpdateMetadata(ctx, r.client, record, func(o client.Object) {
				addFinalizer(o)
				stamp(o, zone.Spec.ZoneName)
			})
		})
	}
	// The stamp on a contested record is what wakes the zone that holds it.
	for _, record := range m.contested {
		group.Go(func() error {
			return syncevent.UpdateMetadata(ctx, r.client, record, func(o client.Object) { stamp(o, zone.Spec.ZoneName) })
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("marking the records of zone %s/%s: %w", zone.Namespace, zone.Name, err)
	}
	return nil
}

func addFinalizer(o client.Object) { controllerutil.AddFinalizer(o, v1beta1.Finalizer) }

// stamp notes on a record which zone it is in.
func stamp(o client.Object, zoneName string) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1beta1.ZoneAnnotation] = zoneName
	o.SetAnnotations(annotations)
}

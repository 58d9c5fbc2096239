package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// marks bounds the metadata writes that run at once.
const marks = 16

// mark puts our finalizer on the zone and on its records, and the zone's name on the records, before anything of them
// goes out: whatever happens later, an object whose data may be in DNS cannot vanish before that data does. A record that
// could not get the finalizer is taken out of the selected ones; the error asks for another pass, the others go out now.
func (r *zoneReconciler) mark(ctx context.Context, zone *v1beta1.DNSZone, m *members) error {
	if err := syncevent.UpdateMetadata(ctx, r.client, zone, addFinalizer); err != nil {
		return fmt.Errorf("adding the finalizer to zone %s/%s: %w", zone.Namespace, zone.Name, err)
	}
	if m.duplicateOf != nil {
		return nil
	}
	failed := make([]error, len(m.selected)+len(m.contested))
	var group errgroup.Group
	group.SetLimit(marks)
	for i, record := range slices.Concat(m.selected, m.contested) {
		group.Go(func() error {
			failed[i] = syncevent.UpdateMetadata(ctx, r.client, record, func(o client.Object) {
				// The stamp on a contested record is what wakes the zone that holds it; the finalizer there is that zone's.
				if i < len(m.selected) {
					addFinalizer(o)
				}
				stamp(o, zone.Spec.ZoneName)
			})
			return nil
		})
	}
	_ = group.Wait()
	marked := m.selected[:0]
	for i, record := range m.selected {
		if failed[i] == nil || controllerutil.ContainsFinalizer(record, v1beta1.Finalizer) {
			marked = append(marked, record)
		}
	}
	m.selected = marked
	if err := errors.Join(failed...); err != nil {
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

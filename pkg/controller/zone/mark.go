package zone

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/controller/apply"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// marks bounds the metadata writes that run at once.
const marks = 16

// markZone puts our finalizer on a zone before it is on any server.
func (r *zoneReconciler) markZone(ctx context.Context, zone *v1beta1.DNSZone) error {
	if controllerutil.ContainsFinalizer(zone, v1beta1.Finalizer) {
		return nil
	}
	if _, err := apply.Metadata(ctx, r.client, zone, addFinalizer); err != nil {
		return fmt.Errorf("adding the finalizer to zone %s/%s: %w", zone.Namespace, zone.Name, err)
	}
	return nil
}

// mark puts our finalizer on the selected objects that lack it, and the zone's name on the records, before anything of them
// goes out: whatever happens later, an object whose data may be in DNS cannot vanish before that data does. Admission did
// it already, unless it was away. An object that could not get the finalizer is left out; the error asks for another pass.
func (p *pass) mark(ctx context.Context, changed []membership.Member) (marked []membership.Member, err error) {
	var mu sync.Mutex
	var group errgroup.Group
	var errs []error
	group.SetLimit(marks)
	for _, m := range changed {
		if m.Role != membership.Selected || p.isMarked(m.Object) {
			marked = append(marked, m)
			continue
		}
		group.Go(func() error {
			_, err := apply.Metadata(ctx, p.client, m.Object.(client.Object), p.marks)
			mu.Lock()
			defer mu.Unlock()
			if err == nil || controllerutil.ContainsFinalizer(m.Object.(client.Object), v1beta1.Finalizer) {
				marked = append(marked, m)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("marking %s: %w", m.Key, err))
				p.world.putBack(membership.KeyOfZone(p.zone), m.Key)
			}
			return nil
		})
	}
	_ = group.Wait()
	return marked, errors.Join(errs...)
}

func (p *pass) isMarked(o source.Object) bool {
	_, record := o.(v1beta1.Record)
	return controllerutil.ContainsFinalizer(o.(client.Object), v1beta1.Finalizer) &&
		(!record || o.GetAnnotations()[v1beta1.ZoneAnnotation] == p.zone.Spec.ZoneName)
}

func (p *pass) marks(o client.Object) {
	addFinalizer(o)
	if _, record := o.(v1beta1.Record); record {
		stamp(o, p.zone.Spec.ZoneName)
	}
}

func addFinalizer(o client.Object) { controllerutil.AddFinalizer(o, v1beta1.Finalizer) }

func removeFinalizer(o client.Object) { controllerutil.RemoveFinalizer(o, v1beta1.Finalizer) }

// stamp notes on a record which zone it is in.
func stamp(o client.Object, zoneName string) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1beta1.ZoneAnnotation] = zoneName
	o.SetAnnotations(annotations)
}

package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// prepare stores what has to be known of a zone before it is on any server.
func (r *reconciler) prepare(ctx context.Context, s scope) error {
	if err := r.addZoneFinalizers(ctx, s.zone); err != nil {
		return err
	}
	return r.recordArrivals(ctx, s)
}

// addZoneFinalizers puts our finalizers on a zone before it is on any server.
func (r *reconciler) addZoneFinalizers(ctx context.Context, zone *v1beta1.DNSZone) error {
	if zone.DeletionTimestamp != nil {
		return nil // It has them, and can get none any more.
	}
	marks := apply.Marks{AddFinalizers: []string{v1beta1.Finalizer, v1beta1.DependentsFinalizer}}
	if _, err := apply.Metadata(ctx, r.kube, zone, marks); err != nil {
		return fmt.Errorf("adding the finalizers to zone %s/%s: %w", zone.Namespace, zone.Name, err)
	}
	return nil
}

// recordArrivals writes into a zone's status since when it has been on its hosts, before the zone comes to any server: whoever
// comes to the same servers later, even at once, is found to be later. A zone that nobody has changed came when it was
// created, which needs no writing before; its first status says so.
func (r *reconciler) recordArrivals(ctx context.Context, s scope) error {
	was := s.zone.Status.Arrivals
	if !equality.Semantic.DeepEqual(was, s.arrivals) && (s.comes || was != nil) {
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": s.zone.UID}, // Another zone of that name came by itself.
			"status":   map[string]any{"arrivals": map[string]any{"hosts": s.arrivals.Hosts}},
		})
		if err != nil {
			return fmt.Errorf("encoding the arrivals of zone %s: %w", s.key(), err)
		}
		zone := &v1beta1.DNSZone{}
		zone.Namespace, zone.Name = s.zone.Namespace, s.zone.Name
		err = r.kube.Status().Patch(ctx, zone, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(apply.FieldOwner))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("recording in the status of zone %s since when it is on its servers: %w", s.key(), err)
		}
	}
	r.states.stateOf(s.zone).arrivals = s.arrivals
	return nil
}

// withArrivals returns a zone with the arrivals that this process has recorded.
func (s *zoneState) withArrivals(zone *v1beta1.DNSZone) *v1beta1.DNSZone {
	if s.arrivals == nil {
		return zone
	}
	known := *zone
	known.Status.Arrivals = s.arrivals
	return &known
}

// maxMetadataWrites bounds the metadata writes that run at once.
const maxMetadataWrites = 16

// addFinalizers puts our finalizer on the selected objects that lack it, and the zone's name on the records, before anything
// of them goes out: whatever happens later, an object whose data may be in DNS cannot vanish before that data does.
// Admission did it already, unless it was away. The objects that could not get the finalizer wait; the error asks for another pass. In the
// first pass of a process, nothing but the status tells whose data is out: it would be taken for nobody's.
func (p zonePass) addFinalizers(ctx context.Context, changed []membership.Member) (ready []membership.Member, waiting []source.ObjectKey, err error) {
	var mu sync.Mutex
	var group errgroup.Group
	var errs []error
	group.SetLimit(maxMetadataWrites)
	ready = make([]membership.Member, 0, len(changed))
	isFirst := p.state.content.Desired() == nil
	for _, m := range changed {
		if m.Role != membership.Selected || p.hasMarks(m.Object) {
			ready = append(ready, m)
			continue
		}
		group.Go(func() error {
			_, err := apply.Metadata(ctx, p.kube, m.Object.(client.Object), p.marksOf(m.Object))
			mu.Lock()
			defer mu.Unlock()
			isOut := isFirst && source.IsPublished(m.Object, p.dnsName())
			if err == nil || isOut || controllerutil.ContainsFinalizer(m.Object.(client.Object), v1beta1.Finalizer) {
				ready = append(ready, m)
			} else {
				waiting = append(waiting, m.Key)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("adding the finalizer to %s: %w", m.Key, err))
				p.zones.PutBack(p.key(), m.Key)
			}
			return nil
		})
	}
	_ = group.Wait()
	return ready, waiting, errors.Join(errs...)
}

// hasMarks reports whether an object has the finalizer and, if it is a record, the zone annotation.
func (p zonePass) hasMarks(o source.Object) bool {
	_, record := o.(v1beta1.Record)
	return controllerutil.ContainsFinalizer(o.(client.Object), v1beta1.Finalizer) &&
		(!record || o.GetAnnotations()[v1beta1.ZoneAnnotation] == p.zone.Spec.ZoneName)
}

// marksOf returns the finalizer and, for a record, the zone annotation.
func (p zonePass) marksOf(o source.Object) apply.Marks {
	marks := apply.Marks{AddFinalizers: []string{v1beta1.Finalizer}}
	if _, record := o.(v1beta1.Record); record {
		marks.SetAnnotations = map[string]string{v1beta1.ZoneAnnotation: p.zone.Spec.ZoneName}
	}
	return marks
}

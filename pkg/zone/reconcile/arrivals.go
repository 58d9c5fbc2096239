package reconcile

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// withArrivals returns a zone with the arrivals that this process has recorded.
func (s *zoneState) withArrivals(zone *v1beta1.DNSZone) *v1beta1.DNSZone {
	if s.arrivals == nil {
		return zone
	}
	known := *zone
	known.Status.Arrivals = s.arrivals
	return &known
}

// prepare stores what has to be known of a zone before it is on any server.
func (r *reconciler) prepare(ctx context.Context, s scope) error {
	if err := r.addZoneFinalizers(ctx, s.zone); err != nil {
		return err
	}
	return r.recordArrivals(ctx, s)
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

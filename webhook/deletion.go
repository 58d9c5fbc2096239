package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// deletionReview keeps what others depend on: a zone with records, a cluster that serves zones, the last primary of a zone.
// The annotation bindy.firestoned.io/allow-deletion lets it go, and so does the end of its namespace.
type deletionReview struct {
	objects objects
}

// guarded are the kinds that others depend on.
var guarded = map[string]bool{"DNSZone": true, "Bind9Instance": true, "Bind9Cluster": true, "Bind9GlobalCluster": true, "ClusterBind9Provider": true}

// review gives why an object must not be deleted, "" when it may.
func (r deletionReview) review(ctx context.Context, req admission.Request) (string, error) {
	if req.Kind.Group != v1beta1.GroupName || !guarded[req.Kind.Kind] {
		return "", nil
	}
	var head metav1.PartialObjectMetadata
	if err := utiljson.Unmarshal(req.OldObject.Raw, &head); err != nil {
		return "", fmt.Errorf("reading the object: %w", err)
	}
	if head.Annotations[v1beta1.AllowDeletionAnnotation] == "true" || head.DeletionTimestamp != nil || req.SubResource != "" {
		return "", nil
	}
	if going, err := r.objects.terminating(ctx, req.Namespace); going || err != nil {
		return "", err
	}
	why, err := r.staying(ctx, req.Kind.Kind, req.OldObject.Raw, head.ObjectMeta)
	if why == "" || err != nil {
		return "", err
	}
	return fmt.Sprintf("%s; to delete it all the same: kubectl annotate %s %s %s=true", why, req.Resource.Resource, namespaced(req.Namespace, req.Name), v1beta1.AllowDeletionAnnotation), nil
}

func namespaced(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return "-n " + namespace + " " + name
}

// again is how soon the caches are looked at again of which it is known that they lag.
const again = 10 * time.Millisecond

// staying names one of the objects that depend on the one of a kind and are not about to go themselves: one command may
// delete them all, faster than the caches learn of it.
func (r deletionReview) staying(ctx context.Context, kind string, raw []byte, meta metav1.ObjectMeta) (string, error) {
	for {
		dependent, why, err := r.dependent(ctx, kind, raw, meta)
		if dependent == nil || err != nil || !r.objects.leavesNow(ctx, dependent) {
			return why, err
		}
		select {
		case <-ctx.Done():
			return why, nil
		case <-time.After(again):
		}
	}
}

// dependent finds one of the objects that depend on the one of a kind, nil when the caches hold none, and says how.
func (r deletionReview) dependent(ctx context.Context, kind string, raw []byte, meta metav1.ObjectMeta) (client.Object, string, error) {
	switch kind {
	case "DNSZone":
		zone := &v1beta1.DNSZone{}
		if err := utiljson.Unmarshal(raw, zone); err != nil {
			return nil, "", fmt.Errorf("reading the zone: %w", err)
		}
		return r.zone(ctx, zone)
	case "Bind9Instance":
		instance := &v1beta1.Bind9Instance{}
		if err := utiljson.Unmarshal(raw, instance); err != nil {
			return nil, "", fmt.Errorf("reading the instance: %w", err)
		}
		return r.instance(ctx, instance)
	}
	return r.cluster(ctx, kind, meta)
}

// zone finds one of the records and endpoints that the zone publishes.
func (r deletionReview) zone(ctx context.Context, zone *v1beta1.DNSZone) (client.Object, string, error) {
	apex, err := rrset.CanonicalName(zone.Spec.ZoneName)
	if err != nil {
		return nil, "", nil // It can have none.
	}
	for _, kind := range v1beta1.RecordKinds {
		records, err := r.objects.recordsUnder(ctx, kind, zone.Namespace, inZone(apex))
		if err != nil {
			return nil, "", err
		}
		for _, record := range records {
			if record.GetDeletionTimestamp() == nil && isZone(r.objects.zones().ZoneOfRecord(record), zone) {
				return record, fmt.Sprintf("zone %s still has records, such as %s, which would leave DNS with it", zone.Spec.ZoneName, source.KeyOf(record)), nil
			}
		}
	}
	for _, key := range []string{apex, below(apex)} {
		endpoints, err := r.objects.endpointsUnder(ctx, key)
		if err != nil {
			return nil, "", err
		}
		for _, e := range endpoints {
			for _, endpoint := range e.Spec.Endpoints {
				if endpoint != nil && e.DeletionTimestamp == nil && isZone(r.objects.zones().ZoneOfEndpoint(e.Namespace, endpoint.DNSName), zone) {
					return e, fmt.Sprintf("zone %s still has data of a DNSEndpoint, %s, which would leave DNS with it", zone.Spec.ZoneName, endpoint.DNSName), nil
				}
			}
		}
	}
	return nil, "", nil
}

// cluster finds one of the zones that are on servers of the cluster.
func (r deletionReview) cluster(ctx context.Context, kind string, meta metav1.ObjectMeta) (client.Object, string, error) {
	instances, err := r.objects.instances(ctx)
	if err != nil {
		return nil, "", err
	}
	own := slices.DeleteFunc(slices.Clone(instances), func(i *v1beta1.Bind9Instance) bool { return !belongs(i, kind, meta) })
	zone := r.zoneWhere(func(zone *v1beta1.DNSZone) bool { return servedByAny(zone, own) })
	if zone == nil {
		return nil, "", nil
	}
	return zone, fmt.Sprintf("%s %s still serves zones, such as %s of DNSZone %s", kind, meta.Name, zone.Spec.ZoneName, membership.KeyOfZone(zone)), nil
}

// belongs tells whether an instance is one of a cluster's.
func belongs(i *v1beta1.Bind9Instance, kind string, cluster metav1.ObjectMeta) bool {
	if kind == "Bind9Cluster" {
		return i.Namespace == cluster.Namespace && i.Spec.ClusterRef == cluster.Name
	}
	return slices.ContainsFunc(i.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == cluster.UID })
}

// instance finds a zone of which the instance is the only primary.
func (r deletionReview) instance(ctx context.Context, instance *v1beta1.Bind9Instance) (client.Object, string, error) {
	if instance.Spec.Role.Normalize() != v1beta1.RolePrimary {
		return nil, "", nil
	}
	instances, err := r.objects.instances(ctx)
	if err != nil {
		return nil, "", err
	}
	others := slices.DeleteFunc(slices.Clone(instances), func(i *v1beta1.Bind9Instance) bool {
		return (i.Namespace == instance.Namespace && i.Name == instance.Name) || i.DeletionTimestamp != nil || i.Spec.Role.Normalize() != v1beta1.RolePrimary
	})
	zone := r.zoneWhere(func(zone *v1beta1.DNSZone) bool {
		return membership.Serves(instance, zone) && !servedByAny(zone, others)
	})
	if zone == nil {
		return nil, "", nil
	}
	return zone, fmt.Sprintf("instance %s is the last primary of zones, such as %s of DNSZone %s", instance.Name, zone.Spec.ZoneName, membership.KeyOfZone(zone)), nil
}

// zoneWhere returns any zone that is there to stay and of which something is true, nil when there is none.
func (r deletionReview) zoneWhere(is func(*v1beta1.DNSZone) bool) *v1beta1.DNSZone {
	for _, zone := range r.objects.zones().Zones() {
		if zone.DeletionTimestamp == nil && is(zone) {
			return zone
		}
	}
	return nil
}

func servedByAny(zone *v1beta1.DNSZone, instances []*v1beta1.Bind9Instance) bool {
	return slices.ContainsFunc(instances, func(i *v1beta1.Bind9Instance) bool { return membership.Serves(i, zone) })
}

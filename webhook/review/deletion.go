package review

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// deletionReviewer keeps what others depend on: a zone with records, a cluster that serves zones, the last primary of a zone. What is
// deleted waits, by its finalizer, for those, so that any tool may delete them in any order, each once. It is refused where nothing would
// wait, such as while Kubernetes deletes its pods.
// The annotation bindy.firestoned.io/allow-deletion lets it go, and so does the end of its namespace.
type deletionReviewer struct {
	objects Objects
}

// guardedKinds are the kinds that others depend on.
var guardedKinds = map[string]bool{"DNSZone": true, "Bind9Instance": true, "Bind9Cluster": true, "Bind9GlobalCluster": true, "ClusterBind9Provider": true}

// review returns why an object must not be deleted, "" when it may, and then what it waits for, "" for nothing.
func (r deletionReviewer) review(ctx context.Context, req admission.Request) (refusal, waits string, err error) {
	if req.Kind.Group != v1beta1.GroupName || !guardedKinds[req.Kind.Kind] {
		return "", "", nil
	}
	var head metav1.PartialObjectMetadata
	if err := utiljson.Unmarshal(req.OldObject.Raw, &head); err != nil {
		return "", "", fmt.Errorf("reading the object: %w", err)
	}
	if head.Annotations[v1beta1.AllowDeletionAnnotation] == "true" || head.DeletionTimestamp != nil || req.SubResource != "" {
		return "", "", nil
	}
	if going, err := r.objects.terminating(ctx, req.Namespace); going || err != nil {
		return "", "", err
	}
	if isNew(req, head.Finalizers) {
		return "", "", nil
	}
	why, err := r.remainingDependent(ctx, dependentsOf{req.Kind.Kind, req.OldObject.Raw, head.ObjectMeta})
	if why == "" || err != nil {
		return "", "", err
	}
	insist := fmt.Sprintf("kubectl annotate %s %s %s=true", req.Resource.Resource, kubectlTarget(req.Namespace, req.Name), v1beta1.AllowDeletionAnnotation)
	if unmet := whyNothingWaits(req, head.Finalizers); unmet != "" {
		return fmt.Sprintf("%s: delete records first, then zones, then their servers%s; to delete it all the same: %s", why, unmet, insist), "", nil
	}
	return "", fmt.Sprintf("%s: it stays at work until these are deleted; to delete it now: %s", why, insist), nil
}

// isNew reports whether nothing is at work for an object yet: the controller puts its finalizer on a zone before the zone is on any server,
// and the fleet manager its own on servers before it makes pods. A tool may delete a folder right after it has applied it.
func isNew(req admission.Request, finalizers []string) bool {
	if req.Kind.Kind == "DNSZone" {
		return !slices.Contains(finalizers, v1beta1.Finalizer)
	}
	var seen struct {
		Status struct {
			ObservedGeneration int64 `json:"observedGeneration"`
		} `json:"status"`
	}
	return !slices.Contains(finalizers, v1beta1.DependentsFinalizer) && utiljson.Unmarshal(req.OldObject.Raw, &seen) == nil && seen.Status.ObservedGeneration <= 0
}

// whyNothingWaits returns why an object does not wait for what depends on it, with what to do, as a part of a refusal; "" when it waits.
func whyNothingWaits(req admission.Request, finalizers []string) string {
	target := req.Resource.Resource + " " + kubectlTarget(req.Namespace, req.Name)
	switch {
	case req.Kind.Kind != "DNSZone" && isForeground(req, finalizers):
		return ", or have it wait for the zones: kubectl delete " + target + " --cascade=background"
	case !slices.Contains(finalizers, v1beta1.DependentsFinalizer) && !isMadeByCluster(req):
		return ", or try again when it can wait for them: kubectl get " + target + " -o jsonpath={.metadata.finalizers} shows " + v1beta1.DependentsFinalizer
	case !slices.Contains(finalizers, v1beta1.DependentsFinalizer):
		return ", or change the replicas of its cluster, which would make it again"
	}
	return ""
}

// isMadeByCluster reports whether a cluster has made the object.
func isMadeByCluster(req admission.Request) bool {
	var head metav1.PartialObjectMetadata
	return utiljson.Unmarshal(req.OldObject.Raw, &head) == nil && metav1.GetControllerOf(&head) != nil
}

// isForeground reports whether Kubernetes deletes the object's children before the object: at once, whatever the object waits for
// (ObjectMeta.finalizers, DeleteOptions.propagationPolicy).
func isForeground(req admission.Request, finalizers []string) bool {
	var options metav1.DeleteOptions
	if len(req.Options.Raw) > 0 && utiljson.Unmarshal(req.Options.Raw, &options) == nil {
		switch {
		case options.OrphanDependents != nil: //nolint:staticcheck // clients may still send it
			return false
		case options.PropagationPolicy != nil:
			return *options.PropagationPolicy == metav1.DeletePropagationForeground
		}
	}
	return slices.Contains(finalizers, metav1.FinalizerDeleteDependents)
}

func kubectlTarget(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return "-n " + namespace + " " + name
}

// dependentsOf is an object that others may depend on.
type dependentsOf struct {
	kind string
	raw  []byte
	meta metav1.ObjectMeta
}

// remainingDependent names one of the objects that depend on an object and are not about to go themselves: one command may
// delete them all, faster than the caches learn of it.
func (r deletionReviewer) remainingDependent(ctx context.Context, of dependentsOf) (string, error) {
	for {
		dependent, why, err := r.findDependent(ctx, of)
		if dependent == nil || err != nil || !awaitChange(ctx, r.objects, []client.Object{dependent}) {
			return why, err
		}
	}
}

// findDependent finds one of the objects that depend on an object, nil when the caches hold none, and says how.
func (r deletionReviewer) findDependent(ctx context.Context, of dependentsOf) (client.Object, string, error) {
	switch of.kind {
	case "DNSZone":
		zone := &v1beta1.DNSZone{}
		if err := utiljson.Unmarshal(of.raw, zone); err != nil {
			return nil, "", fmt.Errorf("reading the zone: %w", err)
		}
		return r.zoneDependent(ctx, zone)
	case "Bind9Instance":
		instance := &v1beta1.Bind9Instance{}
		if err := utiljson.Unmarshal(of.raw, instance); err != nil {
			return nil, "", fmt.Errorf("reading the instance: %w", err)
		}
		return r.instanceDependent(ctx, instance)
	}
	return r.clusterDependent(ctx, of)
}

// zoneDependent finds one of the records and endpoints that the zone publishes.
func (r deletionReviewer) zoneDependent(ctx context.Context, zone *v1beta1.DNSZone) (client.Object, string, error) {
	apex, err := rrset.CanonicalName(zone.Spec.ZoneName)
	if err != nil {
		return nil, "", nil // It can have none.
	}
	for _, kind := range v1beta1.RecordKinds {
		records, err := r.objects.recordsUnder(ctx, kind, zone.Namespace, zoneKey(apex))
		if err != nil {
			return nil, "", err
		}
		isOfZone := func(record v1beta1.Record) bool {
			return record.GetDeletionTimestamp() == nil && sameZone(r.objects.zoneCache().ZoneOfRecord(record), zone)
		}
		if i := slices.IndexFunc(records, isOfZone); i >= 0 {
			return records[i], fmt.Sprintf("zone %s still has records, such as %s, which would leave DNS with it", zone.Spec.ZoneName, source.KeyOf(records[i])), nil
		}
	}
	for _, key := range []string{apex, belowKey(apex)} {
		endpoints, err := r.objects.endpointsUnder(ctx, key)
		if err != nil {
			return nil, "", err
		}
		for _, e := range endpoints {
			isOfZone := func(endpoint *v1alpha1.Endpoint) bool {
				return endpoint != nil && sameZone(r.objects.zoneCache().ZoneOfEndpoint(e, endpoint.DNSName), zone)
			}
			if i := slices.IndexFunc(e.Spec.Endpoints, isOfZone); i >= 0 && e.DeletionTimestamp == nil {
				return e, fmt.Sprintf("zone %s still has data of a DNSEndpoint, %s, which would leave DNS with it", zone.Spec.ZoneName, e.Spec.Endpoints[i].DNSName), nil
			}
		}
	}
	return nil, "", nil
}

// clusterDependent finds one of the zones that are on servers of the cluster.
func (r deletionReviewer) clusterDependent(ctx context.Context, of dependentsOf) (client.Object, string, error) {
	instances, err := r.objects.instances(ctx)
	if err != nil {
		return nil, "", err
	}
	all, err := r.objects.fleet(ctx)
	if err != nil {
		return nil, "", err
	}
	meta := of.meta
	var cluster metav1.Object = &meta
	if of.kind == "Bind9Cluster" {
		cluster = &v1beta1.Bind9Cluster{ObjectMeta: meta}
	}
	own := slices.DeleteFunc(slices.Clone(instances), func(i *v1beta1.Bind9Instance) bool { return !all.BelongsTo(i, cluster) })
	zone := r.zoneWhere(meta.Namespace, func(zone *v1beta1.DNSZone) bool { return servedByAny(all, zone, own) })
	if zone == nil {
		return nil, "", nil
	}
	return zone, fmt.Sprintf("%s %s still serves zones, such as %s", of.kind, meta.Name, exampleText(zone, meta.Namespace)), nil
}

// instanceDependent finds a zone of which the instance is the only primary.
func (r deletionReviewer) instanceDependent(ctx context.Context, instance *v1beta1.Bind9Instance) (client.Object, string, error) {
	if instance.Spec.Role.Normalize() != v1beta1.RolePrimary {
		return nil, "", nil
	}
	instances, err := r.objects.instances(ctx)
	if err != nil {
		return nil, "", err
	}
	all, err := r.objects.fleet(ctx)
	if err != nil {
		return nil, "", err
	}
	zone := r.zoneWhere(instance.Namespace, func(zone *v1beta1.DNSZone) bool {
		return membership.IsLastPrimary(all, instance, zone, instances)
	})
	if zone == nil {
		return nil, "", nil
	}
	return zone, fmt.Sprintf("instance %s is the last primary of zones, such as %s", instance.Name, exampleText(zone, instance.Namespace)), nil
}

// zoneWhere returns a zone that is there to stay and of which something is true, nil when there is none: one of a namespace
// rather than of others, and always the same one, so that who asks again and again learns of no more.
func (r deletionReviewer) zoneWhere(namespace string, is func(*v1beta1.DNSZone) bool) *v1beta1.DNSZone {
	isBefore := func(a, b *v1beta1.DNSZone) bool {
		if own := a.Namespace == namespace; own != (b.Namespace == namespace) {
			return own
		}
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name)) < 0
	}
	var first *v1beta1.DNSZone
	for _, zone := range r.objects.zoneCache().Zones() {
		if zone.DeletionTimestamp == nil && (first == nil || isBefore(zone, first)) && is(zone) {
			first = zone
		}
	}
	return first
}

// exampleText names a zone to somebody in a namespace, "" for an administrator. A DNSZone of another namespace has no name.
func exampleText(zone *v1beta1.DNSZone, namespace string) string {
	switch {
	case zone.Namespace == namespace:
		return fmt.Sprintf("%s of DNSZone %s", zone.Spec.ZoneName, membership.KeyOfZone(zone))
	case namespace == "":
		return zone.Spec.ZoneName
	}
	return "one of another namespace"
}

func servedByAny(f *membership.Fleet, zone *v1beta1.DNSZone, instances []*v1beta1.Bind9Instance) bool {
	return slices.ContainsFunc(instances, func(i *v1beta1.Bind9Instance) bool { return f.Serves(i, zone) })
}

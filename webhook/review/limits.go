package review

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// Limits are how many DNSZones, DNSProviders, instances and records a namespace may have of which no ZoneGrant says otherwise; 0 is any number. They
// bound what one tenant costs the processes that all share, so a large object counts as several. Many creations at once may exceed them by what the caches have not seen yet.
type Limits struct {
	Zones, Providers int
	// Instances limits Bind9Instances, with those that Bind9Clusters ask for (countInstances).
	Instances int
	// Records limits records and the endpoints of DNSEndpoints together. What is large or has names of many labels counts as several (weight).
	Records int
}

// quota is a limit, and what a request takes of it.
type quota struct {
	what, flag string
	limit      int
	// granted returns the same limit of a ZoneGrant; nil if these have none.
	granted func(*v1beta1.NamespaceLimits) *int32
	// have is what the caches hold, ofKind how many objects of the kind of the request.
	have, ofKind int
	adds         int
	// isLarge is true if the object counts as several because of its size.
	isLarge bool
}

// refusal returns why a namespace does not get what a request adds, "" if it does.
func (l Limits) refusal(ctx context.Context, objects Objects, req admission.Request) (string, error) {
	q, err := l.quotaOf(ctx, objects, req)
	if err != nil || q.adds <= 0 {
		return "", err
	}
	grants, err := objects.limitsFor(req.Namespace)
	if err != nil {
		return "", err
	}
	limit, origin := q.limit, fmt.Sprintf("--%s of the webhook", q.flag)
	if q.granted != nil {
		if g, n := grantedLimit(grants, req.Namespace, q.granted); g != nil {
			limit, origin = n, fmt.Sprintf("spec.limits of ZoneGrant %s", g.Name)
		}
	}
	if limit == 0 || q.have+q.adds <= limit {
		return "", nil
	}
	if req.Kind.Group == v1beta1.GroupName { // The caches may still hold what was deleted a moment ago.
		if now, known := objects.countLive(ctx, req.Namespace, req.Kind.Kind); known && q.have-q.ofKind+now+q.adds <= limit {
			return "", nil
		}
	}
	size := ""
	if q.isLarge {
		size = ", as it is large"
	}
	return fmt.Sprintf("namespace %s may have %d %s by %s, has %d, and this adds %d%s: delete what is not needed, use another namespace, or ask those who run Lockstep "+
		"for a higher limit", req.Namespace, limit, q.what, origin, q.have, q.adds, size), nil
}

// quotaOf returns the quota that a request counts against. One that adds nothing has none.
func (l Limits) quotaOf(ctx context.Context, objects Objects, req admission.Request) (q quota, err error) {
	switch kind := req.Kind.Kind; {
	case kind == zoneKind:
		q.what, q.flag, q.limit, q.granted = "objects of kind DNSZone", "max-zones", l.Zones, func(l *v1beta1.NamespaceLimits) *int32 { return l.Zones }
		have := objects.countObjects(req.Namespace, kind)
		q.have, q.ofKind = have.weight, have.objects
	case kind == providerKind:
		q.what, q.flag, q.limit, q.granted = "objects of kind DNSProvider", "max-providers", l.Providers, func(l *v1beta1.NamespaceLimits) *int32 { return l.Providers }
		all, err := objects.fleet(ctx)
		if err != nil {
			return quota{}, err
		}
		for _, p := range all.ProvidersIn(req.Namespace) {
			_, _, n := weigh(p)
			q.have, q.ofKind = q.have+n, q.ofKind+1
		}
	case kind == instanceKind || kind == clusterKind:
		q.what, q.flag, q.limit = "Bind9Instances, with those that Bind9Clusters ask for,", "max-instances", l.Instances
		if q.have, q.ofKind, err = countInstances(ctx, objects, req.Namespace, kind); err != nil {
			return quota{}, err
		}
	case kind == endpointKind || isRecordKind(kind):
		q.what, q.flag, q.limit, q.granted = "records and endpoints of DNSEndpoints", "max-records", l.Records, func(l *v1beta1.NamespaceLimits) *int32 { return l.Records }
		q.have, q.ofKind = objects.countObjects(req.Namespace, "").weight, objects.countObjects(req.Namespace, kind).objects
	default:
		return quota{}, nil
	}
	q.adds = weightOf(req.Kind.Kind, req.Object.Raw)
	q.isLarge = q.adds > 1 && req.Kind.Kind != endpointKind && req.Kind.Kind != clusterKind
	if req.Operation == admissionv1.Update {
		q.adds -= weightOf(req.Kind.Kind, req.OldObject.Raw)
	}
	return q, nil
}

// grantedLimit returns the limit of the ZoneGrants that apply to a namespace, and the grant that has it: nil if none has. Grants that name
// the namespace go before those of all; of several, the highest limit counts, and of equal ones the first by name.
func grantedLimit(grants []*v1beta1.ZoneGrant, namespace string, limitOf func(*v1beta1.NamespaceLimits) *int32) (from *v1beta1.ZoneGrant, limit int) {
	named := false
	for _, g := range grants {
		n := limitOf(g.Spec.Limits)
		if n == nil {
			continue
		}
		names := slices.Contains(g.Spec.Namespaces, namespace)
		better := from == nil || int(*n) > limit || int(*n) == limit && g.Name < from.Name
		if names != named && from != nil {
			better = names
		}
		if better {
			from, limit, named = g, int(*n), names
		}
	}
	return from, limit
}

// countInstances counts what a namespace has of instances, and the objects of a kind. A cluster's instances are made later, by the fleet manager,
// which is not reviewed: they count from when the cluster asks for them. Anybody may have one name a cluster: if more do than it asks for, all count.
func countInstances(ctx context.Context, objects Objects, namespace, kind string) (weight, ofKind int, err error) {
	instances, err := objects.instances(ctx)
	if err != nil {
		return 0, 0, err
	}
	clusters, err := objects.clustersOf(ctx, namespace)
	if err != nil {
		return 0, 0, err
	}
	if kind == clusterKind {
		ofKind = len(clusters)
	}
	members := map[string]int{} // by the name of their cluster
	for _, i := range instances {
		if i.Namespace != namespace {
			continue
		}
		_, _, n := weigh(i)
		if members[i.Spec.ClusterRef] += n; kind == instanceKind {
			ofKind++
		}
	}
	for _, c := range clusters {
		_, _, n := weigh(c)
		weight += max(n-members[c.Name], 0)
	}
	for _, n := range members {
		weight += n
	}
	return weight, ofKind, nil
}

// endpointKind and the others are kinds that are counted beside those of records.
const (
	endpointKind = "DNSEndpoint"
	zoneKind     = "DNSZone"
	providerKind = "DNSProvider"
	instanceKind = "Bind9Instance"
	clusterKind  = "Bind9Cluster"
)

// weigh returns how many an object counts as: as one, or as its endpoints, or more if that takes more memory than so many of common size.
// Caches hold its labels, its former names, of which a zone has none, and its spec, here as JSON. The controller has an entry for each label,
// each value of a list, and each name above a name: there are no more of these than commas, and dots (countDots). A cluster counts as the
// instances that it asks for. Kinds without a limit count as nothing.
func weigh(o any) (namespace, kind string, n int) {
	endpoints, sizeEach, entriesEach, times := 0, 1<<10, 16, 1
	var meta metav1.Object
	var declared any
	former := ""
	switch o := o.(type) {
	case v1beta1.Record:
		meta, kind, declared = o, v1beta1.KindOf(o).Kind, reflect.ValueOf(o).Elem().FieldByName("Spec").Interface()
		former = formerNames(o)
	case *v1beta1.DNSZone:
		meta, kind, declared = o, zoneKind, &o.Spec
		sizeEach, entriesEach = 8<<10, 64
	case *v1alpha1.DNSEndpoint:
		meta, kind, declared = o, endpointKind, &o.Spec
		former = formerNames(o)
		endpoints = len(o.Spec.Endpoints)
	case *v1beta1.DNSProvider:
		meta, kind, declared = o, providerKind, &o.Spec
		sizeEach, entriesEach = 16<<10, 16<<10
	case *v1beta1.Bind9Instance:
		meta, kind, declared = o, instanceKind, &o.Spec
		sizeEach, entriesEach = 16<<10, 16<<10
	case *v1beta1.Bind9Cluster:
		meta, kind, declared = o, clusterKind, &o.Spec
		sizeEach, entriesEach, times = 16<<10, 16<<10, max(1, replicasOf(o.Spec.Primary)+replicasOf(o.Spec.Secondary))
	default:
		return "", "", 0
	}
	labels, _ := json.Marshal(meta.GetLabels()) // What was decoded can be encoded.
	spec, _ := json.Marshal(declared)
	size := len(labels) + len(former) + len(spec)
	entries := len(meta.GetLabels()) + countDots(spec) + bytes.Count(spec, []byte{','})
	return meta.GetNamespace(), kind, times * max(endpoints, (size+sizeEach-1)/sizeEach, (entries+entriesEach-1)/entriesEach)
}

// countDots counts the dots of a spec, those of deep names beyond the first five thrice: each stands for a name of its own in the controller and
// the API server, which takes three times what other entries do. Names of hosts, reverse names of IPv4 and addresses have no more.
func countDots(spec []byte) (n int) {
	const shallow, times = 5, 3
	inName := 0
	for _, c := range spec {
		switch c {
		case '.':
			if inName++; inName > shallow {
				n += times
			} else {
				n++
			}
		case '"', ' ', ',':
			inName = 0
		}
	}
	return n
}

// replicasOf is how many instances of a role a cluster asks for.
func replicasOf(role *v1beta1.RoleConfig) int {
	if role == nil {
		return 0
	}
	return int(ptr.Deref(role.Replicas, 1))
}

func formerNames(o metav1.Object) string { return o.GetAnnotations()[v1beta1.FormerNamesAnnotation] }

func isRecordKind(kind string) bool {
	_, is := v1beta1.RecordKindOf(kind)
	return is
}

// emptyOf makes an object of a kind that is weighed.
func emptyOf(kind string) metav1.Object {
	switch kind {
	case zoneKind:
		return &v1beta1.DNSZone{}
	case endpointKind:
		return &v1alpha1.DNSEndpoint{}
	case providerKind:
		return &v1beta1.DNSProvider{}
	case instanceKind:
		return &v1beta1.Bind9Instance{}
	case clusterKind:
		return &v1beta1.Bind9Cluster{}
	}
	record, _ := v1beta1.RecordKindOf(kind)
	return record.New()
}

// weightOf is that of an object in a request; nothing if it cannot be read: the review says so.
func weightOf(kind string, raw []byte) int {
	o := emptyOf(kind)
	if utiljson.Unmarshal(raw, o) != nil {
		return 0
	}
	_, _, n := weigh(o)
	return n
}

// count is how many objects there are, and what they count as.
type count struct{ objects, weight int }

// objectCounts are how many zones, records and endpoints each namespace has in the informer caches, by kind. Counting follows the events of
// the informers, so that a review costs the same however many there are. It is safe for concurrent use.
type objectCounts struct {
	mu    sync.RWMutex
	kinds map[string]map[string]count // by namespace
}

// of returns the count of a namespace and kind; without a kind, of all records and endpoints.
func (c *objectCounts) of(namespace, kind string) (n count) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for of, part := range c.kinds[namespace] {
		if kind == of || kind == "" && (of == endpointKind || isRecordKind(of)) {
			n.objects += part.objects
			n.weight += part.weight
		}
	}
	return n
}

// add counts an object, or with less than 0 no more.
func (c *objectCounts) add(o any, times int) {
	if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	namespace, kind, weight := weigh(o)
	if kind == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.kinds[namespace]
	if of == nil {
		if c.kinds == nil {
			c.kinds = map[string]map[string]count{}
		}
		of = map[string]count{}
		c.kinds[namespace] = of
	}
	if of[kind] = (count{of[kind].objects + times, of[kind].weight + times*weight}); of[kind] == (count{}) {
		delete(of, kind)
	}
	if len(of) == 0 {
		delete(c.kinds, namespace)
	}
}

// OnAdd implements cache.ResourceEventHandler.
func (c *objectCounts) OnAdd(o any, _ bool) { c.add(o, 1) }

// OnUpdate implements cache.ResourceEventHandler. A status that was written changes no count.
func (c *objectCounts) OnUpdate(old, o any) {
	was, okWas := old.(metav1.Object)
	is, okIs := o.(metav1.Object)
	if okWas && okIs && was.GetGeneration() == is.GetGeneration() && is.GetGeneration() != 0 && maps.Equal(was.GetLabels(), is.GetLabels()) &&
		formerNames(was) == formerNames(is) {
		return
	}
	c.add(o, 1)
	c.add(old, -1)
}

// OnDelete implements cache.ResourceEventHandler.
func (c *objectCounts) OnDelete(o any) { c.add(o, -1) }

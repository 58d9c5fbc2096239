package review

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// Limits are how many DNSZones, DNSProviders and records a namespace may have of which no ZoneGrant says otherwise; 0 is any number. They
// bound what one tenant costs the processes that all share. Many creations at once may exceed them by what the caches have not seen yet.
type Limits struct {
	Zones, Providers int
	// Records limits records and the endpoints of DNSEndpoints together.
	Records int
}

// quota is a limit, and what a request takes of it.
type quota struct {
	what, flag string
	limit      int
	// granted returns the same limit of a ZoneGrant.
	granted func(*v1beta1.NamespaceLimits) *int32
	// have is what the caches hold, ofKind the part of it that is of the kind of the request.
	have, ofKind int
	adds         int
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
	if g, n := grantedLimit(grants, req.Namespace, q.granted); g != nil {
		limit, origin = n, fmt.Sprintf("spec.limits of ZoneGrant %s", g.Name)
	}
	if limit == 0 || q.have+q.adds <= limit {
		return "", nil
	}
	if req.Kind.Group == v1beta1.GroupName { // The caches may still hold what was deleted a moment ago.
		if now, known := objects.countLive(ctx, req.Namespace, req.Kind.Kind); known && q.have-q.ofKind+now+q.adds <= limit {
			return "", nil
		}
	}
	return fmt.Sprintf("namespace %s may have %d %s by %s, has %d, and this adds %d: delete what is not needed, use another namespace, or ask those who run Lockstep "+
		"for a higher limit", req.Namespace, limit, q.what, origin, q.have, q.adds), nil
}

// quotaOf returns the quota that a request counts against. One that adds nothing has none.
func (l Limits) quotaOf(ctx context.Context, objects Objects, req admission.Request) (q quota, err error) {
	creates := req.Operation == admissionv1.Create
	switch {
	case req.Kind.Group == v1alpha1.GroupVersion.Group:
		q.adds = countEndpoints(req.Object.Raw) - countEndpoints(req.OldObject.Raw)
	case req.Kind.Group == v1beta1.GroupName && creates:
		q.adds = 1
	}
	if q.adds <= 0 {
		return quota{}, nil
	}
	switch kind := req.Kind.Kind; {
	case kind == "DNSZone":
		q.what, q.flag, q.limit, q.granted = "objects of kind DNSZone", "max-zones", l.Zones, func(l *v1beta1.NamespaceLimits) *int32 { return l.Zones }
		q.have = objects.zoneCache().CountZones(req.Namespace)
		q.ofKind = q.have
	case kind == "DNSProvider":
		all, err := objects.fleet(ctx)
		if err != nil {
			return quota{}, err
		}
		q.what, q.flag, q.limit, q.granted = "objects of kind DNSProvider", "max-providers", l.Providers, func(l *v1beta1.NamespaceLimits) *int32 { return l.Providers }
		q.have = all.CountProviders(req.Namespace)
		q.ofKind = q.have
	case kind == endpointKind || slices.ContainsFunc(v1beta1.RecordKinds, func(k v1beta1.RecordKind) bool { return k.Kind == kind }):
		q.what, q.flag, q.limit, q.granted = "records and endpoints of DNSEndpoints", "max-records", l.Records, func(l *v1beta1.NamespaceLimits) *int32 { return l.Records }
		q.have, q.ofKind = objects.countRecords(req.Namespace, ""), objects.countRecords(req.Namespace, kind)
	default:
		return quota{}, nil
	}
	return q, nil
}

// countEndpoints returns the number of endpoints of a DNSEndpoint; of one that cannot be read, 0: the review says so.
func countEndpoints(raw []byte) int {
	var o struct {
		Spec struct {
			Endpoints []json.RawMessage `json:"endpoints"`
		} `json:"spec"`
	}
	if len(raw) == 0 || utiljson.Unmarshal(raw, &o) != nil {
		return 0
	}
	return len(o.Spec.Endpoints)
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

// endpointKind is the kind of DNSEndpoints.
const endpointKind = "DNSEndpoint"

// recordCounts are how many records each namespace has in the informer caches, by kind; of DNSEndpoints, how many endpoints are in them.
// Counting follows the events of the informers, so that a review costs the same however many there are. It is safe for concurrent use.
type recordCounts struct {
	mu    sync.RWMutex
	kinds map[string]map[string]int // by namespace
}

// of returns the count of a namespace and kind; without a kind, of all.
func (c *recordCounts) of(namespace, kind string) (n int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for of, count := range c.kinds[namespace] {
		if kind == "" || kind == of {
			n += count
		}
	}
	return n
}

// add counts an object so many times.
func (c *recordCounts) add(o any, times int) {
	if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	var namespace, kind string
	switch o := o.(type) {
	case v1beta1.Record:
		namespace, kind = o.GetNamespace(), v1beta1.KindOf(o).Kind
	case *v1alpha1.DNSEndpoint:
		namespace, kind, times = o.Namespace, endpointKind, times*len(o.Spec.Endpoints)
	}
	if times == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.kinds[namespace]
	if of == nil {
		if c.kinds == nil {
			c.kinds = map[string]map[string]int{}
		}
		of = map[string]int{}
		c.kinds[namespace] = of
	}
	if of[kind] += times; of[kind] == 0 {
		delete(of, kind)
	}
	if len(of) == 0 {
		delete(c.kinds, namespace)
	}
}

// OnAdd implements cache.ResourceEventHandler.
func (c *recordCounts) OnAdd(o any, _ bool) { c.add(o, 1) }

// OnUpdate implements cache.ResourceEventHandler.
func (c *recordCounts) OnUpdate(old, o any) {
	if _, counted := o.(*v1alpha1.DNSEndpoint); counted { // A record is one before and after.
		c.add(o, 1)
		c.add(old, -1)
	}
}

// OnDelete implements cache.ResourceEventHandler.
func (c *recordCounts) OnDelete(o any) { c.add(o, -1) }

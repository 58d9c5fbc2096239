package review

import (
	"sync"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

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

package membership

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// objectsPerStep is how many objects are looked at before the lock is given away. Each endpoint of a DNSEndpoint counts as one more.
const objectsPerStep = 100

// Steps are a change of a zone or a namespace, which may give any number of objects other roles. They are to be run to the end. Each yields
// what it affects; the Cache is not locked then, and others read it and change it. In between every object has either its former roles or
// its new ones.
type Steps = iter.Seq[[]Affected]

// Lock is that of somebody who follows changes in steps.
type Lock struct {
	sync.Mutex
	// stepped is signaled when a change is over.
	stepped *sync.Cond
}

// NewLock returns a Lock that nobody has.
func NewLock() *Lock {
	l := &Lock{}
	l.stepped = sync.NewCond(l)
	return l
}

// Follow runs a change, and hands on what it affects. The lock is held, but given away after each step: somebody may have any number of objects,
// and everybody else waits for it.
func (l *Lock) Follow(steps Steps, each func([]Affected)) {
	for affected := range steps {
		each(affected)
		l.Unlock()
		l.Lock()
	}
	l.stepped.Broadcast()
}

// WaitForSteps waits for the end of a change of a zone, until which it has some of its objects alone. The lock is held, but given away meanwhile.
func (l *Lock) WaitForSteps(c *Cache, zone ZoneKey) {
	for !c.IsSettled(zone) {
		l.stepped.Wait()
	}
}

// ZoneSteps is SetZone in steps.
func (c *Cache) ZoneSteps(zone *v1beta1.DNSZone) Steps {
	return c.inSteps(func() ([]Affected, func(lookFunc)) {
		known := c.zones[KeyOfZone(zone)]
		if known == nil || known.UID != zone.UID {
			return c.addZone(zone, known)
		}
		old, was := known.DNSZone, known.besides()
		if selectsSame(old, zone) {
			known.DNSZone = zone
			asked := c.updateRequest(known, requestOf(zone))
			if !SameStanding(old, zone) {
				asked = slices.Concat(asked, was, known.besides())
			}
			return asked, nil
		}
		asked := c.updateRequest(known, request{})
		c.unindexZone(known)
		known.DNSZone = zone
		c.indexZone(known)
		asked = append(asked, c.updateRequest(known, requestOf(zone))...)
		return slices.Concat(asked, was, known.besides()), func(look lookFunc) { c.lookAtCandidates(known, known.objects, look) }
	})
}

// addZone begins to set a zone, in place of one that had its name or of none.
func (c *Cache) addZone(zone *v1beta1.DNSZone, before *zoneEntry) (affected []Affected, rest func(lookFunc)) {
	var left map[*objectEntry]Role
	if before != nil {
		affected, left = c.forgetZone(before), before.objects
	}
	z := &zoneEntry{DNSZone: zone, key: KeyOfZone(zone), objects: map[*objectEntry]Role{}}
	c.zones[z.key] = z
	c.perNamespace[z.Namespace]++
	c.indexZone(z)
	affected = append(affected, c.updateRequest(z, requestOf(zone))...)
	return append(affected, z.besides()...), func(look lookFunc) {
		c.lookAtCandidates(z, left, look)
	}
}

// ZoneRemovalSteps is RemoveZone in steps.
func (c *Cache) ZoneRemovalSteps(key ZoneKey) Steps {
	return c.inSteps(func() ([]Affected, func(lookFunc)) {
		z := c.zones[key]
		if z == nil {
			return nil, nil
		}
		return c.forgetZone(z), func(look lookFunc) {
			for o := range z.objects {
				look(o, true)
			}
		}
	})
}

// forgetZone makes a zone unknown. Its objects keep their roles in it until they are looked at.
func (c *Cache) forgetZone(z *zoneEntry) []Affected {
	delete(c.zones, z.key)
	if c.perNamespace[z.key.Namespace]--; c.perNamespace[z.key.Namespace] == 0 {
		delete(c.perNamespace, z.key.Namespace)
	}
	asked := c.updateRequest(z, request{})
	c.unindexZone(z)
	return append(asked, z.besides()...)
}

// NamespaceSteps is SetNamespace in steps.
func (c *Cache) NamespaceSteps(name string, labels map[string]string) Steps {
	return c.inSteps(func() ([]Affected, func(lookFunc)) {
		if known, exists := c.namespaces[name]; exists && maps.Equal(known, labels) {
			return nil, nil
		}
		c.namespaces[name] = labels
		return nil, func(look lookFunc) { c.lookAtOffered(name, look) }
	})
}

// NamespaceRemovalSteps is RemoveNamespace in steps.
func (c *Cache) NamespaceRemovalSteps(name string) Steps {
	return c.inSteps(func() ([]Affected, func(lookFunc)) {
		delete(c.namespaces, name)
		return nil, func(look lookFunc) { c.lookAtOffered(name, look) }
	})
}

func (c *Cache) lookAtOffered(namespace string, look lookFunc) {
	for o := range c.offered[namespace] {
		look(o, true)
	}
}

// lookFunc takes an object that a change may concern; if it does, its roles are found anew. c.mu is held, but not all the time: objects come
// and go between two calls. Go lets a map change while it is ranged over: what has gone is not met any more, and what has come needs not be.
type lookFunc = func(o *objectEntry, concerned bool)

// inSteps runs a change: begin, which returns what is affected at once, and then the rest, which looks at objects. c.mu is held while both run.
func (c *Cache) inSteps(begin func() (affected []Affected, rest func(lookFunc))) Steps {
	return func(yield func([]Affected) bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		affected, rest := begin()
		c.changes++
		change, looked := c.changes, 0
		handOut := func() {
			c.mu.Unlock()
			defer c.mu.Lock()
			yield(affected)
			affected, looked = nil, 0
		}
		if rest != nil {
			rest(func(o *objectEntry, concerned bool) {
				if looked++; concerned && o.lookedAt != change {
					o.lookedAt = change
					_, isRecord := o.Object.(v1beta1.Record)
					// Which of its names an endpoint's zone takes may have changed even where its role has not.
					affected = append(affected, c.updateRoles(o, !isRecord)...)
					looked += namesOf(o)
				}
				if looked >= c.perStep {
					handOut()
				}
			})
		}
		if len(affected) > 0 {
			handOut()
		}
	}
}

// namesOf is how many endpoints an object has.
func namesOf(o *objectEntry) int {
	if e, ok := o.Object.(*v1alpha1.DNSEndpoint); ok {
		return len(e.Spec.Endpoints)
	}
	return 0
}

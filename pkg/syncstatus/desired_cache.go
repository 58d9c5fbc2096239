package syncstatus

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/snapshot"
)

// DesiredCache maintains the desired state of one zone: Update returns what Declare would, at the cost of what changed. It is not
// safe for concurrent use; the Declareds that it returns are.
type DesiredCache struct {
	declared *DesiredState
	// keys are the pending RRsets of each object that has any.
	keys map[source.ObjectKey][]rrset.Key
}

// NewDesiredCache returns an empty DesiredCache. A zone whose name changes needs another one.
func NewDesiredCache() *DesiredCache {
	return &DesiredCache{
		declared: &DesiredState{
			pending: snapshot.New[rrset.Key, []source.ObjectKey](hashByName), objects: snapshot.New[source.ObjectKey, source.Object](hashByObject),
			compared: &comparisonCache{},
		},
		keys: map[source.ObjectKey][]rrset.Key{},
	}
}

// Update makes the desired state of the zone as it is now; desired and problem are as in Declare. changed yields the objects that have
// changed since the last Update: themselves, their roles, or the outcome of their declarations (source.Zone.ChangedObjects).
func (b *DesiredCache) Update(zone *v1beta1.DNSZone, desired *source.Zone, problem *Problem, changed iter.Seq[membership.Member]) *DesiredState {
	last := b.declared
	d := &DesiredState{zone: zone, desired: desired, problem: problem, pending: last.pending, compared: last.compared}
	switch {
	case desired == nil && problem == nil:
		d.problem = &Problem{Reason: status.Invalid, Message: "the zone could not be read"}
	case problem != nil && last.problem != nil && *problem == *last.problem:
		d.problem = last.problem
	}
	edit, objects := pendingEdit{last.pending.Edit()}, last.objects.Edit()
	for m := range changed {
		if m.Object != nil && m.Role != membership.NoRole {
			objects.Put(m.Key, m.Object)
		} else {
			objects.Delete(m.Key)
		}
		keys := d.pendingKeys(m)
		if slices.Equal(b.keys[m.Key], keys) {
			continue
		}
		edit.removeObject(m.Key, b.keys[m.Key])
		edit.addObject(m.Key, keys)
		if delete(b.keys, m.Key); len(keys) > 0 {
			b.keys[m.Key] = keys
		}
	}
	d.pending, d.objects = edit.Map(), objects.Map()
	b.declared = d
	return d
}

// pendingEdit is a map of pending RRsets under construction. Its lists of objects are sorted and immutable.
type pendingEdit struct {
	*snapshot.Edit[rrset.Key, []source.ObjectKey]
}

func (e pendingEdit) addObject(o source.ObjectKey, keys []rrset.Key) {
	for _, k := range keys {
		objects, _ := e.Get(k)
		if i, known := slices.BinarySearchFunc(objects, o, compareObjects); !known {
			e.Put(k, slices.Insert(slices.Clone(objects), i, o))
		}
	}
}

func (e pendingEdit) removeObject(o source.ObjectKey, keys []rrset.Key) {
	for _, k := range keys {
		objects, _ := e.Get(k)
		i, known := slices.BinarySearchFunc(objects, o, compareObjects)
		switch {
		case known && len(objects) == 1:
			e.Delete(k)
		case known:
			e.Put(k, slices.Delete(slices.Clone(objects), i, i+1))
		}
	}
}

func compareObjects(a, b source.ObjectKey) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
}

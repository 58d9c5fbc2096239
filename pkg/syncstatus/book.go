package syncstatus

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/snapshot"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// Book keeps the desired side of one zone up to date: Update is what Declare would give, at the cost of what changed. It is
// not safe for concurrent use; the Declareds that it gives are.
type Book struct {
	declared *Declared
	// keys are the pending RRsets of each object that has any.
	keys map[source.ObjectKey][]rrset.Key
}

// NewBook makes the book of a zone of which nothing is known. A zone that is given another name needs another book.
func NewBook() *Book {
	return &Book{
		declared: &Declared{
			pending: snapshot.New[rrset.Key, []source.ObjectKey](byName), objects: snapshot.New[source.ObjectKey, source.Object](byObject),
			compared: &comparisons{},
		},
		keys: map[source.ObjectKey][]rrset.Key{},
	}
}

// Update takes the zone as it is now; desired and problem are as in Declare. changed yields the objects that were not the
// same at the last Update: they themselves, their roles, or what became of their declarations (source.Zone.ChangedObjects).
func (b *Book) Update(zone *v1beta1.DNSZone, desired *source.Zone, problem *Problem, changed iter.Seq[membership.Member]) *Declared {
	last := b.declared
	d := &Declared{zone: zone, desired: desired, problem: problem, pending: last.pending, compared: last.compared}
	switch {
	case desired == nil && problem == nil:
		d.problem = &Problem{Reason: status.Invalid, Message: "the zone could not be read"}
	case problem != nil && last.problem != nil && *problem == *last.problem:
		d.problem = last.problem
	}
	edit, objects := edit{last.pending.Edit()}, last.objects.Edit()
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
		edit.remove(m.Key, b.keys[m.Key])
		edit.add(m.Key, keys)
		if delete(b.keys, m.Key); len(keys) > 0 {
			b.keys[m.Key] = keys
		}
	}
	d.pending, d.objects = edit.Map(), objects.Map()
	b.declared = d
	return d
}

// edit is the pending RRsets in the making. Lists of objects are sorted, and never changed once they are in.
type edit struct {
	*snapshot.Edit[rrset.Key, []source.ObjectKey]
}

func (e edit) add(o source.ObjectKey, keys []rrset.Key) {
	for _, k := range keys {
		objects, _ := e.Get(k)
		if i, known := slices.BinarySearchFunc(objects, o, compareObjects); !known {
			e.Put(k, slices.Insert(slices.Clone(objects), i, o))
		}
	}
}

func (e edit) remove(o source.ObjectKey, keys []rrset.Key) {
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

func sameObjects(a, b []source.ObjectKey) bool { return slices.Equal(a, b) }

// Package source turns Kubernetes objects into desired RRsets. Every value keeps the references of the objects that
// declared it, so that any outcome, however far down the pipeline, can be reported on the right object.
//
// Which objects belong to a zone is for package membership to say. The package does no I/O.
//
// Build makes the desired content of a zone from all its objects. A Builder gives the same content for objects that
// change, at the cost of what changed.
package source

import (
	"iter"
	"slices"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/snapshot"
)

// Ref names the object that declared a value.
type Ref struct {
	APIVersion, Kind, Namespace, Name string
	UID                               types.UID
	// Generation of the object's spec that was read.
	Generation int64
}

// Key names the object, whatever its generation.
func (r *Ref) Key() ObjectKey { return ObjectKey{r.Kind, r.Namespace, r.Name} }

// String is how messages name an object: "ARecord dns-system/www".
func (r *Ref) String() string { return r.Key().String() }

// isSame compares the objects and their generations.
func (r *Ref) isSame(o *Ref) bool { return r == o || *r == *o }

// readBy is how messages to an object of a namespace name this one: what is in another namespace, its reader may have no
// right to know of.
func (r *Ref) readBy(namespace string) string {
	if r.Namespace == namespace {
		return r.String()
	}
	return "an object of another namespace"
}

// RRset is a desired RRset with the objects that declared its values.
type RRset struct {
	rrset.RRset
	// Owners holds for each rdata (same index as RRset.Rdata) the objects that declared it, oldest first.
	Owners [][]*Ref
}

// Equal compares data, spelling and owners.
func (s RRset) Equal(o RRset) bool {
	return s.RRset.Equal(o.RRset) && s.Spelling.Equal(o.Spelling) && slices.EqualFunc(s.Owners, o.Owners, func(a, b []*Ref) bool { return slices.EqualFunc(a, b, (*Ref).isSame) })
}

// Zone is the desired content of one DNS zone. It never changes, and any number of goroutines may read it. What it gives
// must not be changed either. It is a plan.Content.
type Zone struct {
	// Name is the zone's canonical name.
	Name string
	Ref  *Ref
	// SOA holds the desired start of authority; its Serial is the user's minimum (0 = none).
	SOA rrset.SOA
	// RRsets holds every desired RRset but the SOA, apex NS and its glue included.
	RRsets snapshot.Map[rrset.Key, RRset]
	// Declarations holds one entry for each record, and for each endpoint that is the zone's.
	Declarations snapshot.Map[ID, Declaration]
	// Refused is the number of declarations that are not accepted. Elsewhere counts those among them whose type is not published here:
	// they are for other programs.
	Refused, Elsewhere int
	// NameServers is what there is to say about the names of the zone's own servers.
	NameServers NameServers
}

// All yields every desired RRset but the SOA, in no particular order. It may be ranged over any number of times.
func (z *Zone) All() iter.Seq[rrset.RRset] {
	return func(yield func(rrset.RRset) bool) {
		for _, s := range z.RRsets.All() {
			if !yield(s.RRset) {
				return
			}
		}
	}
}

// Get finds a desired RRset.
func (z *Zone) Get(key rrset.Key) (rrset.RRset, bool) {
	s, ok := z.RRsets.Get(key)
	return s.RRset, ok
}

// Len is the number of desired RRsets.
func (z *Zone) Len() int { return z.RRsets.Len() }

// At yields every desired RRset at an owner name, in no particular order.
func (z *Zone) At(name string) iter.Seq[rrset.RRset] {
	return func(yield func(rrset.RRset) bool) {
		for key, s := range z.RRsets.Near(rrset.Key{Name: name}) {
			if key.Name == name && !yield(s.RRset) {
				return
			}
		}
	}
}

// IsApexData is true for RRsets that are the zone object's alone, as its SOA is: the NS records at the apex, and addresses of name
// servers that no record or endpoint declares. Where others write to the zone as well, these RRsets are theirs.
func (z *Zone) IsApexData(key rrset.Key) bool {
	switch key.Type {
	case dns.TypeNS:
		return key.Name == z.Name
	case dns.TypeA, dns.TypeAAAA:
	default:
		return false
	}
	set, declared := z.RRsets.Get(key)
	isOther := func(by *Ref) bool { return by.Kind != z.Ref.Kind }
	return declared && !slices.ContainsFunc(set.Owners, func(owners []*Ref) bool { return slices.ContainsFunc(owners, isOther) })
}

// IsKept is true for RRsets that servers keep as they are while the zone's own name servers wait for addresses: the NS records at the apex, and
// the addresses of the name servers that wait.
func (z *Zone) IsKept(key rrset.Key) bool {
	switch key.Type {
	case dns.TypeNS:
		return key.Name == z.Name && z.NameServers.Waiting != ""
	case dns.TypeA, dns.TypeAAAA:
		return slices.Contains(z.NameServers.Pending, key.Name)
	}
	return false
}

// Of yields the declarations of one object, by index.
func (z *Zone) Of(key ObjectKey) iter.Seq2[ID, Declaration] {
	return func(yield func(ID, Declaration) bool) {
		for _, index := range indexesOf(z.Declarations.Near(ID{ObjectKey: key}), key) {
			id := ID{key, index}
			if d, ok := z.Declarations.Get(id); ok && !yield(id, d) {
				return
			}
		}
	}
}

// indexesOf lists the indexes of an object's declarations, in order.
func indexesOf(near iter.Seq2[ID, Declaration], key ObjectKey) (indexes []int) {
	for id := range near {
		if id.ObjectKey == key {
			indexes = append(indexes, id.Index)
		}
	}
	slices.Sort(indexes)
	return indexes
}

// ChangedNames yields, once each, the owner names whose RRsets are not the same in an older version of the zone: all of
// them when that is nil. Who declares the data is no part of it. It costs what changed.
func (z *Zone) ChangedNames(old *Zone) iter.Seq[string] {
	if old == nil {
		old = &Zone{}
	}
	same := func(a, b RRset) bool { return a.RRset.Equal(b.RRset) }
	return distinctValues(snapshot.Diff(z.RRsets, old.RRsets, same), func(k rrset.Key) string { return k.Name })
}

// ChangedObjects yields, once each, the objects whose declarations are not the same in an older version of the zone: all
// of them when that is nil, and those that are in the older version alone.
func (z *Zone) ChangedObjects(old *Zone) iter.Seq[ObjectKey] {
	if old == nil {
		old = &Zone{}
	}
	return distinctValues(snapshot.Diff(z.Declarations, old.Declarations, Declaration.Equal), func(id ID) ObjectKey { return id.ObjectKey })
}

// distinctValues yields what is made of the elements of a sequence in which those of the same value follow each other, without
// repetitions.
func distinctValues[K any, T comparable](all iter.Seq[K], of func(K) T) iter.Seq[T] {
	return func(yield func(T) bool) {
		var last T
		begun := false
		for k := range all {
			t := of(k)
			if begun && t == last {
				continue
			}
			if last, begun = t, true; !yield(t) {
				return
			}
		}
	}
}

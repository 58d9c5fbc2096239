// Package source turns Kubernetes objects into desired RRsets. Every value keeps the references of the objects that
// declared it, so that any outcome, however far down the pipeline, can be told to the right object.
//
// Selection (which records, instances and zones belong together) lives here too, because admission, the controller
// and the aggregated API server must never disagree about it. The package does no I/O.
package source

import (
	"iter"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// Ref names the object that declared a value.
type Ref struct {
	APIVersion, Kind, Namespace, Name string
	UID                               types.UID
	// Generation of the object's spec that was read.
	Generation int64
}

// RRset is a desired RRset with the objects that declared its values.
type RRset struct {
	rrset.RRset
	// Owners holds for each rdata (same index as RRset.Rdata) the objects that declared it, oldest first.
	Owners [][]Ref
}

// Declaration is what became of one source object (a record, later an endpoint of a DNSEndpoint) in this zone.
type Declaration struct {
	Ref Ref
	// Key is the RRset that the object declares values of.
	Key rrset.Key
	// Rdata are the object's own values in canonical form; TTL is its effective TTL (own, zone's, 3600).
	Rdata []string
	TTL   uint32
	// Accepted is true when the values are part of Zone.RRsets. Otherwise Reason (Invalid or Conflict) and Message
	// say why, naming the field and, for a conflict, the winner.
	Accepted        bool
	Reason, Message string
	// Note is a remark on an accepted declaration, such as a TTL lowered by another object; empty when there is none.
	Note string
}

// Zone is the desired content of one DNS zone.
type Zone struct {
	// Name is the zone's canonical name.
	Name string
	Ref  Ref
	// SOA holds the desired start of authority; its Serial is the user's minimum (0 = none).
	SOA rrset.SOA
	// RRsets holds every desired RRset but the SOA, apex NS and its glue included.
	RRsets map[rrset.Key]RRset
	// Declarations holds one entry for each selected object, in a stable order.
	Declarations []Declaration
}

// All yields every desired RRset but the SOA, in no particular order. It may be ranged over any number of times.
func (z *Zone) All() iter.Seq[rrset.RRset] {
	return func(yield func(rrset.RRset) bool) {
		for _, s := range z.RRsets {
			if !yield(s.RRset) {
				return
			}
		}
	}
}

// Get finds a desired RRset.
func (z *Zone) Get(key rrset.Key) (rrset.RRset, bool) {
	s, ok := z.RRsets[key]
	return s.RRset, ok
}

// Len is the number of desired RRsets.
func (z *Zone) Len() int { return len(z.RRsets) }

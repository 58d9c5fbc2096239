package plan

import (
	"iter"
	"maps"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Content is what a zone holds or should hold, without the SOA. Callers must not change what it returns.
type Content interface {
	// Get returns an RRset.
	Get(rrset.Key) (rrset.RRset, bool)
	// All yields every RRset once, in any order.
	All() iter.Seq[rrset.RRset]
	// At yields every RRset at an owner name once, in any order.
	At(name string) iter.Seq[rrset.RRset]
	// Len returns the number of RRsets.
	Len() int
}

// Map is a Content of few RRsets: At visits all of them.
type Map map[rrset.Key]rrset.RRset

// Get implements Content.
func (m Map) Get(key rrset.Key) (rrset.RRset, bool) {
	s, ok := m[key]
	return s, ok
}

// All implements Content.
func (m Map) All() iter.Seq[rrset.RRset] { return maps.Values(m) }

// At implements Content.
func (m Map) At(name string) iter.Seq[rrset.RRset] {
	return func(yield func(rrset.RRset) bool) {
		for key, s := range m {
			if key.Name == name && !yield(s) {
				return
			}
		}
	}
}

// Len implements Content.
func (m Map) Len() int { return len(m) }

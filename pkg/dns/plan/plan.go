// Package plan compares the desired content of a zone with what a server was observed to hold, and returns the changes that
// lead from one to the other. It is pure: no clock, no I/O, the same plan for the same input.
package plan

import (
	"iter"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/seq"
)

// Changes is the difference between observed and desired content of one zone on one server. UpdateOld[i] is what
// UpdateNew[i] replaces. Every slice is sorted by owner name (canonical order) and type.
type Changes struct {
	Create, UpdateOld, UpdateNew, Delete []rrset.RRset
	// Conflicts are desired RRsets that are in none of the above because the server would ignore them.
	Conflicts []Conflict
	// SOA is true if the SOA's data (not its serial) has to change.
	SOA bool
}

// Conflict is a desired RRset that cannot coexist with foreign data, such as a CNAME at a name with foreign addresses
// (RFC 1034 section 3.6.2).
type Conflict struct {
	Want rrset.RRset
	// Foreign are the conflicting RRsets, sorted.
	Foreign []rrset.Key
	// Why says what else is in the way; empty if it is foreign data alone.
	Why string
}

// Blocking is desired Content without what cannot be on the server because of data of others.
type Blocking interface {
	Content
	// Blocked returns what is missing at an owner name.
	Blocked(name string) []Conflict
}

// HasChanges is false if there is nothing to apply.
func (c Changes) HasChanges() bool {
	return c.SOA || c.Len() > 0
}

// Len counts the RRsets that change.
func (c Changes) Len() int { return len(c.Create) + len(c.UpdateNew) + len(c.Delete) }

// Keys yields the key of every RRset that changes.
func (c Changes) Keys() iter.Seq[rrset.Key] {
	sets := seq.Concat(slices.Values(c.Create), slices.Values(c.UpdateNew), slices.Values(c.Delete))
	return seq.Map(sets, func(s rrset.RRset) rrset.Key { return s.Key })
}

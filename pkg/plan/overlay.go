package plan

import (
	"iter"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// Overlay is what a server that holds Bottom will hold once it has what it lacks of Top: Top, and what Bottom has beyond
// it. Not of it are what Hide holds of Bottom, what the server keeps itself (rrset.Maintained), and what of Top would be a
// Conflict. It brings further servers to the content of one that also has data of others.
//
// With Calculate(Top, Bottom, Hide, …) applied, Bottom becomes the Overlay. Get and At cost little, All and Len what
// there is.
type Overlay struct {
	Top, Bottom Content
	// Hide holds the keys that leave Bottom when Top lacks them, as owned does for Calculate.
	Hide func(rrset.Key) bool
}

// Get implements Content.
func (o Overlay) Get(key rrset.Key) (rrset.RRset, bool) {
	if s, ok := o.Top.Get(key); ok {
		if o.blocked(key) {
			return rrset.RRset{}, false
		}
		return s, true
	}
	if s, ok := o.Bottom.Get(key); ok && o.shows(key) {
		return s, true
	}
	return rrset.RRset{}, false
}

// All implements Content.
func (o Overlay) All() iter.Seq[rrset.RRset] { return o.both(o.Top.All(), o.Bottom.All()) }

// At implements Content.
func (o Overlay) At(name string) iter.Seq[rrset.RRset] {
	return o.both(o.Top.At(name), o.Bottom.At(name))
}

// Len implements Content.
func (o Overlay) Len() int {
	n := 0
	for range o.All() {
		n++
	}
	return n
}

func (o Overlay) both(top, bottom iter.Seq[rrset.RRset]) iter.Seq[rrset.RRset] {
	return func(yield func(rrset.RRset) bool) {
		for s := range top {
			if !o.blocked(s.Key) && !yield(s) {
				return
			}
		}
		for s := range bottom {
			if _, above := o.Top.Get(s.Key); !above && o.shows(s.Key) && !yield(s) {
				return
			}
		}
	}
}

// shows tells whether an RRset of Bottom that Top lacks is to be seen.
func (o Overlay) shows(key rrset.Key) bool { return !rrset.Maintained(key.Type) && !o.Hide(key) }

// blocked tells whether what stays of Bottom keeps an RRset of Top from being served.
func (o Overlay) blocked(key rrset.Key) bool {
	if !o.lacks(key) {
		return false
	}
	cname := o.lacks(rrset.Key{Name: key.Name, Type: dns.TypeCNAME})
	for s := range o.Bottom.At(key.Name) {
		if _, above := o.Top.Get(s.Key); !above && excludes(s.Type, cname) && (rrset.Maintained(s.Type) || !o.Hide(s.Key)) {
			return true
		}
	}
	return false
}

// lacks tells whether Bottom has nothing where Top has something.
func (o Overlay) lacks(key rrset.Key) bool {
	_, wanted := o.Top.Get(key)
	_, there := o.Bottom.Get(key)
	return wanted && !there
}

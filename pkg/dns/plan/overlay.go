package plan

import (
	"iter"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/seq"
)

// Overlay is what a server that holds Bottom will hold after Calculate(Top, Bottom, Hide, …) was applied: Top, without what
// would be a Conflict, and what Bottom has beyond it, without what Hide holds of it and what servers maintain themselves
// (rrset.IsServerMaintained). It brings further servers to the content of one that also has foreign data.
//
// Get and At are cheap; All and Len visit everything.
type Overlay struct {
	Top, Bottom Content
	// Hide holds for keys that are deleted from Bottom if Top lacks them, as owned of Calculate.
	Hide func(rrset.Key) bool
}

// Get implements Content.
func (o Overlay) Get(key rrset.Key) (rrset.RRset, bool) {
	if s, ok := o.Top.Get(key); ok {
		if o.isBlocked(key) {
			return rrset.RRset{}, false
		}
		return s, true
	}
	if s, ok := o.Bottom.Get(key); ok && o.showsBottom(key) {
		return s, true
	}
	return rrset.RRset{}, false
}

// All implements Content.
func (o Overlay) All() iter.Seq[rrset.RRset] { return o.overlayOf(o.Top.All(), o.Bottom.All()) }

// At implements Content.
func (o Overlay) At(name string) iter.Seq[rrset.RRset] {
	return o.overlayOf(o.Top.At(name), o.Bottom.At(name))
}

// Len implements Content.
func (o Overlay) Len() int { return seq.Count(o.All()) }

func (o Overlay) overlayOf(top, bottom iter.Seq[rrset.RRset]) iter.Seq[rrset.RRset] {
	return func(yield func(rrset.RRset) bool) {
		for s := range top {
			if !o.isBlocked(s.Key) && !yield(s) {
				return
			}
		}
		for s := range bottom {
			if _, above := o.Top.Get(s.Key); !above && o.showsBottom(s.Key) && !yield(s) {
				return
			}
		}
	}
}

// showsBottom decides whether an RRset of Bottom that Top lacks is part of the overlay.
func (o Overlay) showsBottom(key rrset.Key) bool {
	return !rrset.IsServerMaintained(key.Type) && !o.Hide(key)
}

// isBlocked reports whether an RRset of Top cannot coexist with what remains of Bottom.
func (o Overlay) isBlocked(key rrset.Key) bool {
	if !o.bottomLacks(key) {
		return false
	}
	cname := o.bottomLacks(rrset.Key{Name: key.Name, Type: dns.TypeCNAME})
	for s := range o.Bottom.At(key.Name) {
		if _, above := o.Top.Get(s.Key); !above && cannotCoexist(s.Type, cname) && (rrset.IsServerMaintained(s.Type) || !o.Hide(s.Key)) {
			return true
		}
	}
	return false
}

func (o Overlay) bottomLacks(key rrset.Key) bool {
	_, wanted := o.Top.Get(key)
	_, there := o.Bottom.Get(key)
	return wanted && !there
}

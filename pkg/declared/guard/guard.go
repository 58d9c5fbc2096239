// Package guard reads from a zone how much of it may vanish before somebody has to confirm it. The controller and forecasts decide by it. It
// does no I/O, and knows nothing of what has vanished.
package guard

import (
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Guard limits how many RRsets of a zone may vanish. The zero Guard allows nothing.
type Guard struct {
	removed, changed limit
	// neverEmpty are canonical owner names.
	neverEmpty []string
}

// limit is how many RRsets may vanish: a percentage of all, if these are minimum or more, and a number; negative where there is none.
type limit struct{ percent, minimum, count int }

// noLimit allows everything, defaultLimit the removal of half of a zone that is not small.
var noLimit, defaultLimit = limit{-1, 0, -1}, limit{50, 100, -1}

// Of reads the guard of a zone. A zone that is being deleted has none: all of it is to vanish.
func Of(zone *v1beta1.DNSZone) Guard {
	g := Guard{removed: defaultLimit, changed: noLimit}
	spec := zone.Spec.Guard
	switch {
	case zone.DeletionTimestamp != nil:
		g.removed = noLimit
		return g
	case spec == nil:
		return g
	}
	if spec.Removed != nil {
		g.removed = limitOf(spec.Removed)
	}
	if spec.Changed != nil {
		g.changed = limitOf(spec.Changed)
	}
	for _, name := range spec.NeverEmpty {
		if owner, err := declaration.OwnerName(name, zone.Spec.ZoneName); err == nil {
			g.neverEmpty = append(g.neverEmpty, owner)
		}
	}
	return g
}

func limitOf(spec *v1beta1.GuardLimit) limit {
	l := noLimit
	if spec.Percent != nil {
		l.percent = int(*spec.Percent)
	}
	if spec.Count != nil {
		l.count = int(*spec.Count)
	}
	return l
}

// allows reports whether n of a number of RRsets may vanish.
func (l limit) allows(n, of int) bool {
	return n == 0 || (l.count < 0 || n <= l.count) && (l.percent < 0 || of < l.minimum || n*100 <= l.percent*of)
}

// AllowsRemovals reports whether n of a number of RRsets may be removed.
func (g Guard) AllowsRemovals(n, of int) bool { return g.removed.allows(n, of) }

// AllowsChanges reports whether n of a number of RRsets may lose values.
func (g Guard) AllowsChanges(n, of int) bool { return g.changed.allows(n, of) }

// LimitsChanges reports whether there is a limit to the RRsets that lose values.
func (g Guard) LimitsChanges() bool { return g.changed != noLimit }

// KeepsName reports whether the last RRset at an owner name may not be removed.
func (g Guard) KeepsName(name string) bool { return slices.Contains(g.neverEmpty, name) }

// LosesValues reports whether an RRset that becomes another one loses a value.
func LosesValues(have, want rrset.RRset) bool {
	return slices.ContainsFunc(have.Rdata, func(value string) bool { return !slices.Contains(want.Rdata, value) })
}

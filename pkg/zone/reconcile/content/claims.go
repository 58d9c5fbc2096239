package content

import (
	"iter"
	"maps"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/dns/ledger"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/seq"
)

// On a primary with an owner, the zone's ledger says what is ours, whatever was known here before: nothing has to be retired.

// viewOf is what a primary with an owner is to hold that holds mirror. Names at which a guard holds something back stay as they are.
func (z *Zone) viewOf(p *Primary, mirror *observe.Mirror) ledger.View {
	return ledger.View{
		Zone: z.desired.Name, Owner: p.owner, Declared: without(z.desired, z.isTheirs), Observed: mirror,
		IsKept: func(name string) bool { _, held := z.guard.held[name]; return held },
	}.Remember()
}

// isTheirs reports whether an RRset belongs to those who run a shared primary.
func (z *Zone) isTheirs(key rrset.Key) bool {
	return z.desired.IsApexData(key) || z.desired.IsKept(key)
}

// claimedNames yields all names to compare on a primary with an owner that holds mirror.
func (z *Zone) claimedNames(p *Primary, mirror *observe.Mirror) iter.Seq[string] {
	names := z.viewOf(p, mirror).Names()
	for set := range mirror.All() {
		names[set.Name] = struct{}{}
	}
	return maps.Keys(names)
}

// twins yields the ledgers of names, and the names of ledgers.
func (z *Zone) twins(p *Primary, mirror *observe.Mirror, all ...iter.Seq[string]) iter.Seq[string] {
	view := z.viewOf(p, mirror)
	return func(yield func(string) bool) {
		for name := range seq.Concat(all...) {
			if twin := view.Twin(name); twin != "" && !yield(twin) {
				return
			}
		}
	}
}

// holds reports whether a primary holds an RRset as declared. With an owner that is so beside values of others, and with whatever TTL.
func (p *Primary) holds(has, declared rrset.RRset) bool {
	if p.owner == "" {
		return declared.Equal(has)
	}
	return !slices.ContainsFunc(declared.Rdata, func(rdata string) bool { return !slices.Contains(has.Rdata, rdata) })
}

// IsClear reports whether nothing is ours of an RRset on a primary that holds mirror.
func (z *Zone) IsClear(p *Primary, mirror *observe.Mirror, key rrset.Key) bool {
	if p.owner != "" {
		return !z.viewOf(p, mirror).Claims(key)
	}
	_, there := mirror.Get(key)
	return !there
}

// group returns the name with which an RRset changes in one message: on a primary with an owner, values change together with their ledger.
func (p *Primary) group(key rrset.Key) string {
	if p.owner == "" || p.Desired == nil {
		return key.Name
	}
	return ledger.Group(p.Desired.Name, key)
}

// heldGroups returns the names at which something may not be sent yet, and so nothing at all.
func (p *Primary) heldGroups(changes plan.Changes, isHeldBack func(rrset.Key, rrset.RRset) bool) map[string]bool {
	held := map[string]bool{}
	if p.owner == "" {
		return held
	}
	wanted := wantedBy(changes)
	for key := range changes.Keys() {
		if isHeldBack(key, wanted[key]) {
			held[p.group(key)] = true
		}
	}
	return held
}

// OwnChanges returns what a guard is asked about of what a primary that holds mirror lacks, and what is ours there. What others have there is
// no loss of ours.
func (z *Zone) OwnChanges(p *Primary, mirror *observe.Mirror, lacking plan.Changes) (have plan.Content, own plan.Changes) {
	if p.owner == "" {
		return mirror, lacking
	}
	have = z.viewOf(p, mirror).Own()
	wanted := wantedBy(lacking)
	for key := range lacking.Keys() {
		was, some := have.Get(key)
		want, declared := z.desired.Get(key)
		_, stays := wanted[key]
		switch {
		case ledger.IsBelow(z.desired.Name, key.Name):
		case !some && declared && stays:
			own.Create = append(own.Create, want)
		case some && declared && stays:
			own.UpdateOld, own.UpdateNew = append(own.UpdateOld, was), append(own.UpdateNew, want)
		case some:
			own.Delete = append(own.Delete, was)
		}
	}
	return have, own
}

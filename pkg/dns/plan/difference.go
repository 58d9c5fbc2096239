package plan

import (
	"iter"
	"maps"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/parallel"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Difference maintains, by owner name, what Calculate would find between the desired content of a zone and what one server
// holds: changes and conflicts depend on their owner name alone. The zero Difference is that of two empty contents. It is
// not safe for concurrent use.
type Difference struct {
	changes map[string]Changes     // by owner name; only where there are any
	foreign map[string][]rrset.Key // by owner name; only where there are any; sorted

	// cuts are the foreign delegations and DNAMEs, below which a server does not answer with what it holds.
	cuts map[rrset.Key]struct{}

	count  int         // of foreign RRsets
	sample []rrset.Key // the first of them; nil if not computed yet
}

// foreignSample is how many foreign RRsets Foreign returns.
const foreignSample = 100

// Reset compares everything.
func (d *Difference) Reset(want, observed Content, owned func(rrset.Key) bool) {
	*d = Difference{}
	d.Update(differingNames(want, observed), want, observed, owned)
}

// Update compares again at the given names, which may be repeated. Afterwards d is as after Reset, provided that names
// are all owner names at which want, observed or owned may have changed. Its cost depends on what is at these names. Many are
// compared on all processors: want, observed and owned have to be safe for concurrent reads.
func (d *Difference) Update(names iter.Seq[string], want, observed Content, owned func(rrset.Key) bool) {
	all := slices.Collect(names)
	found := make([]nameDifference, len(all))
	parallel.ForRange(len(all), func(i int) { found[i] = compareName(all[i], want, observed, owned) })
	for i, name := range all {
		d.setChanges(name, found[i].changes)
		d.setForeign(name, found[i].foreign)
	}
}

// nameDifference is the difference at one owner name.
type nameDifference struct {
	changes Changes
	foreign []rrset.Key
}

func compareName(name string, want, observed Content, owned func(rrset.Key) bool) nameDifference {
	w, have := nameContent(slices.Collect(want.At(name))), nameContent(slices.Collect(observed.At(name)))
	var blocked []Conflict
	if b, ok := want.(Blocking); ok {
		blocked = b.Blocked(name)
	}
	if len(blocked) == 0 && slices.EqualFunc(w, have, rrset.RRset.Equal) {
		return nameDifference{}
	}
	found := nameDifference{Calculate(w, have, owned, rrset.SOA{}, rrset.SOA{}), foreignKeys(w, have, owned)}
	found.changes.Conflicts = append(found.changes.Conflicts, blocked...)
	return found
}

// Changes equals the result of Calculate, at a cost that depends on the number of changes. The caller owns its slices.
func (d *Difference) Changes(wantSOA, haveSOA rrset.SOA) Changes {
	all := Changes{SOA: !wantSOA.SameData(haveSOA)}
	for _, name := range slices.SortedFunc(maps.Keys(d.changes), rrset.CompareNames) {
		c := d.changes[name]
		all.Create = append(all.Create, c.Create...)
		all.UpdateOld = append(all.UpdateOld, c.UpdateOld...)
		all.UpdateNew = append(all.UpdateNew, c.UpdateNew...)
		all.Delete = append(all.Delete, c.Delete...)
		all.Conflicts = append(all.Conflicts, c.Conflicts...)
	}
	return all
}

// Foreign counts the foreign RRsets and gives the first 100 of them in order. What servers maintain themselves (rrset.IsServerMaintained)
// is not foreign. It is cheap as long as they do not change.
func (d *Difference) Foreign() (count int, some []rrset.Key) {
	if d.sample == nil {
		for _, keys := range d.foreign {
			for _, key := range keys {
				d.sample = rrset.InsertFirst(d.sample, foreignSample, key)
			}
		}
	}
	return d.count, slices.Clone(d.sample)
}

func (d *Difference) setChanges(name string, c Changes) {
	if c.HasChanges() || len(c.Conflicts) > 0 {
		if d.changes == nil {
			d.changes = map[string]Changes{}
		}
		d.changes[name] = c
		return
	}
	delete(d.changes, name)
}

func (d *Difference) setForeign(name string, keys []rrset.Key) {
	before := d.foreign[name]
	if slices.Equal(before, keys) {
		return
	}
	d.count, d.sample = d.count+len(keys)-len(before), nil
	d.setCuts(before, keys)
	if len(keys) == 0 {
		delete(d.foreign, name)
		return
	}
	if d.foreign == nil {
		d.foreign = map[string][]rrset.Key{}
	}
	d.foreign[name] = keys
}

func (d *Difference) setCuts(before, keys []rrset.Key) {
	for _, key := range before {
		delete(d.cuts, key)
	}
	for _, key := range keys {
		if key.Type == dns.TypeNS || key.Type == dns.TypeDNAME {
			if d.cuts == nil {
				d.cuts = map[rrset.Key]struct{}{}
			}
			d.cuts[key] = struct{}{}
		}
	}
}

// ForeignCuts lists the foreign delegations and DNAMEs, in order.
func (d *Difference) ForeignCuts() []rrset.Key {
	return slices.SortedFunc(maps.Keys(d.cuts), rrset.Key.Compare)
}

// foreignKeys lists the keys of have that are neither desired nor owned, sorted.
func foreignKeys(want, have nameContent, owned func(rrset.Key) bool) []rrset.Key {
	var keys []rrset.Key
	for _, s := range have {
		if _, wanted := want.Get(s.Key); !wanted && !rrset.IsServerMaintained(s.Type) && !owned(s.Key) {
			keys = append(keys, s.Key)
		}
	}
	slices.SortFunc(keys, rrset.Key.Compare)
	return keys
}

// differingNames yields the owner names at which two contents differ; some may be repeated.
func differingNames(want, observed Content) iter.Seq[string] {
	return func(yield func(string) bool) {
		for w := range want.All() {
			if have, ok := observed.Get(w.Key); (!ok || !have.Equal(w)) && !yield(w.Name) {
				return
			}
		}
		for have := range observed.All() {
			if _, ok := want.Get(have.Key); !ok && !yield(have.Name) {
				return
			}
		}
	}
}

// nameContent is the Content of one owner name: a few RRsets.
type nameContent []rrset.RRset

func (s nameContent) Get(key rrset.Key) (rrset.RRset, bool) {
	for i := range s {
		if s[i].Type == key.Type {
			return s[i], s[i].Name == key.Name
		}
	}
	return rrset.RRset{}, false
}

func (s nameContent) All() iter.Seq[rrset.RRset] { return slices.Values(s) }

func (s nameContent) At(string) iter.Seq[rrset.RRset] { return slices.Values(s) }

func (s nameContent) Len() int { return len(s) }

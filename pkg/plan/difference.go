package plan

import (
	"iter"
	"maps"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// Difference is what Calculate would find between the desired content of a zone and what one server holds, kept up to
// date by owner name: what a desired RRset does to an observed one, and what stands in its way, is decided at its owner
// name alone. The zero Difference is that of nothing and nothing. It is not safe for concurrent use.
type Difference struct {
	changes map[string]Changes     // by owner name, where there are any
	foreign map[string][]rrset.Key // by owner name, where there are any; sorted

	count  int         // of foreign RRsets
	sample []rrset.Key // the first of them; nil when it has to be made anew
}

// foreignSample is how many foreign RRsets Foreign names.
const foreignSample = 100

// Reset compares everything.
func (d *Difference) Reset(want, observed Content, owned func(rrset.Key) bool) {
	*d = Difference{}
	d.Update(differing(want, observed), want, observed, owned)
}

// Update compares anew at the given names, which may come more than once. After it d is what Reset would make it,
// provided that names are all owner names at which want, observed or what owned says may have changed since. It costs as
// much as there is at these names.
func (d *Difference) Update(names iter.Seq[string], want, observed Content, owned func(rrset.Key) bool) {
	for name := range names {
		w, have := sets(slices.Collect(want.At(name))), sets(slices.Collect(observed.At(name)))
		d.setChanges(name, Calculate(w, have, owned, rrset.SOA{}, rrset.SOA{}))
		d.setForeign(name, foreign(w, have, owned))
	}
}

// Changes gives what Calculate would, and costs as much as there is to change. Its slices are the caller's.
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

// Foreign tells of the observed RRsets that nobody wants and that nobody here owned: how many there are, and the first
// 100 of them in order. What each server keeps itself (rrset.Maintained) is not among them. It costs nothing as long as
// they stay the same.
func (d *Difference) Foreign() (count int, some []rrset.Key) {
	if d.sample == nil {
		for _, keys := range d.foreign {
			for _, key := range keys {
				d.sample = rrset.KeepFirst(d.sample, foreignSample, key)
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
	if len(keys) == 0 {
		delete(d.foreign, name)
		return
	}
	if d.foreign == nil {
		d.foreign = map[string][]rrset.Key{}
	}
	d.foreign[name] = keys
}

// foreign gives the keys of have that nobody wants and nobody owned, sorted.
func foreign(want, have sets, owned func(rrset.Key) bool) []rrset.Key {
	var keys []rrset.Key
	for _, s := range have {
		if _, wanted := want.Get(s.Key); !wanted && !rrset.Maintained(s.Type) && !owned(s.Key) {
			keys = append(keys, s.Key)
		}
	}
	slices.SortFunc(keys, rrset.Key.Compare)
	return keys
}

// differing yields the owner names at which two contents are not the same; some more than once.
func differing(want, observed Content) iter.Seq[string] {
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

// sets is the Content at one owner name: a few RRsets.
type sets []rrset.RRset

func (s sets) Get(key rrset.Key) (rrset.RRset, bool) {
	for i := range s {
		if s[i].Type == key.Type {
			return s[i], s[i].Name == key.Name
		}
	}
	return rrset.RRset{}, false
}

func (s sets) All() iter.Seq[rrset.RRset] { return slices.Values(s) }

func (s sets) At(string) iter.Seq[rrset.RRset] { return slices.Values(s) }

func (s sets) Len() int { return len(s) }

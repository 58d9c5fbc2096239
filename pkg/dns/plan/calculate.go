package plan

import (
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Calculate finds the changes that turn observed into want on one server. want is every desired RRset but the SOA, observed everything
// that the server holds. An undesired RRset is deleted only if owned holds for its key: the keys that we published or may have published,
// or every key of a zone that is pruned. Other undesired RRsets are foreign and stay; a desired RRset that cannot coexist with them is a
// Conflict. RRsets that servers maintain themselves (rrset.IsServerMaintained) are never deleted. The SOAs are compared without their
// serials.
func Calculate(want, observed Content, owned func(rrset.Key) bool, wantSOA, haveSOA rrset.SOA) Changes {
	c := Changes{SOA: !wantSOA.SameData(haveSOA)}
	found := 0
	for w := range want.All() {
		have, ok := observed.Get(w.Key)
		if ok {
			found++
		}
		switch {
		case !ok:
			c.Create = append(c.Create, w)
		case !have.Equal(w):
			c.UpdateOld, c.UpdateNew = append(c.UpdateOld, have), append(c.UpdateNew, w)
		}
	}
	if found < observed.Len() {
		c.planLeftovers(want, observed, owned)
	}
	c.sortAll()
	return c
}

// planLeftovers plans what happens to undesired RRsets on the server.
func (c *Changes) planLeftovers(want, observed Content, owned func(rrset.Key) bool) {
	foreign := map[string][]rrset.Key{} // By owner name, where they conflict.
	creates := c.createdNames()
	for have := range observed.All() {
		key := have.Key
		if _, ok := want.Get(key); ok {
			continue
		}
		if !rrset.IsServerMaintained(key.Type) && owned(key) {
			c.Delete = append(c.Delete, have)
		} else if cname, ok := creates[key.Name]; ok && cannotCoexist(key.Type, cname) {
			foreign[key.Name] = append(foreign[key.Name], key)
		}
	}
	if len(foreign) > 0 {
		c.holdBackConflicts(foreign)
	}
}

// Excludes reports whether RRsets of two different types cannot be at one name.
func Excludes(a, b uint16) bool {
	return a == dns.TypeCNAME && cannotCoexist(b, true) || b == dns.TypeCNAME && cannotCoexist(a, true)
}

// createdNames has the owner names of new RRsets; true where one of them is a CNAME.
func (c *Changes) createdNames() map[string]bool {
	names := make(map[string]bool, len(c.Create))
	for _, w := range c.Create {
		names[w.Name] = names[w.Name] || w.Type == dns.TypeCNAME
	}
	return names
}

// cannotCoexist compares a type with new RRsets at its name: a CNAME coexists with nothing but what signs it (RFC 1034 section 3.6.2, RFC
// 4034 section 3).
func cannotCoexist(rrtype uint16, cname bool) bool {
	switch rrtype {
	case dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeKEY, dns.TypeSIG, dns.TypeNXT:
		return false
	}
	return cname || rrtype == dns.TypeCNAME
}

// holdBackConflicts moves RRsets that cannot coexist with foreign data from Create to Conflicts.
func (c *Changes) holdBackConflicts(foreign map[string][]rrset.Key) {
	var kept []rrset.RRset
	for _, w := range c.Create {
		if keys, ok := foreign[w.Name]; ok {
			slices.SortFunc(keys, rrset.Key.Compare)
			c.Conflicts = append(c.Conflicts, Conflict{Want: w, Foreign: keys})
			continue
		}
		kept = append(kept, w)
	}
	c.Create = kept
}

func (c *Changes) sortAll() {
	slices.SortFunc(c.Create, compareByKey)
	slices.SortFunc(c.UpdateOld, compareByKey)
	slices.SortFunc(c.UpdateNew, compareByKey)
	slices.SortFunc(c.Delete, compareByKey)
	slices.SortFunc(c.Conflicts, func(a, b Conflict) int { return compareByKey(a.Want, b.Want) })
}

func compareByKey(a, b rrset.RRset) int { return a.Key.Compare(b.Key) }

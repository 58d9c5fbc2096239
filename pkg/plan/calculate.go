package plan

import (
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// Calculate gives the changes that turn observed into want on one server.
//
// want is every desired RRset but the SOA, observed everything that the server holds. An observed RRset that nobody wants
// is deleted only when owned holds its key: the keys that we published or may have published, or every key in a zone
// where nobody else keeps data. All else is foreign and stays, even where it prevents a desired RRset from being served:
// that one is a Conflict then. What each server keeps itself (rrset.Maintained) is never deleted. The SOAs are compared
// without their serials.
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
		c.leftovers(want, observed, owned)
	}
	c.sort()
	return c
}

// leftovers judges what is on the server and not wanted.
func (c *Changes) leftovers(want, observed Content, owned func(rrset.Key) bool) {
	foreign := map[string][]rrset.Key{} // By owner name, of those that have something to do with CNAMEs.
	creates := c.createdNames()
	for have := range observed.All() {
		key := have.Key
		if _, ok := want.Get(key); ok {
			continue
		}
		if !rrset.Maintained(key.Type) && owned(key) {
			c.Delete = append(c.Delete, have)
		} else if cname, ok := creates[key.Name]; ok && excludes(key.Type, cname) {
			foreign[key.Name] = append(foreign[key.Name], key)
		}
	}
	if len(foreign) > 0 {
		c.holdBack(foreign)
	}
}

// createdNames holds the owner names of new RRsets; true where one of them is a CNAME.
func (c *Changes) createdNames() map[string]bool {
	names := make(map[string]bool, len(c.Create))
	for _, w := range c.Create {
		names[w.Name] = names[w.Name] || w.Type == dns.TypeCNAME
	}
	return names
}

// excludes tells whether a type cannot stand at a name: beside a CNAME there is nothing but what signs it (RFC 1034
// section 3.6.2, RFC 4034 section 3), beside other data there is no CNAME.
func excludes(rrtype uint16, cname bool) bool {
	switch rrtype {
	case dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeKEY, dns.TypeSIG, dns.TypeNXT:
		return false
	}
	return cname || rrtype == dns.TypeCNAME
}

// holdBack moves what foreign data keeps from being served from Create to Conflicts.
func (c *Changes) holdBack(foreign map[string][]rrset.Key) {
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

func (c *Changes) sort() {
	slices.SortFunc(c.Create, byKey)
	slices.SortFunc(c.UpdateOld, byKey)
	slices.SortFunc(c.UpdateNew, byKey)
	slices.SortFunc(c.Delete, byKey)
	slices.SortFunc(c.Conflicts, func(a, b Conflict) int { return byKey(a.Want, b.Want) })
}

func byKey(a, b rrset.RRset) int { return a.Key.Compare(b.Key) }

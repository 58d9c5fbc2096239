package source

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// addRRset unites values with an RRset of the zone.
func (d *groupDecision) addRRset(at *nameNode, key rrset.Key, ttl uint32, rdata []string, by *Ref) {
	d.uniteRRset(at, rrset.RRset{Key: key, TTL: ttl, Rdata: rdata}, by)
}

func (d *groupDecision) uniteRRset(at *nameNode, declared rrset.RRset, by *Ref) {
	key, ttl, rdata := declared.Key, declared.TTL, declared.Rdata
	set := findRRset(d.sets[at], key.Type)
	if set == nil {
		d.sets[at] = append(d.sets[at], d.newRRset(declared, by))
		return
	}
	set.Spelling = uniteSpelling(set.Spelling, declared)
	if ttl != set.TTL {
		d.lowerTTL(set, ttl, by)
	}
	for _, value := range rdata {
		i, found := slices.BinarySearch(set.Rdata, value)
		switch {
		case !found:
			set.Rdata = slices.Insert(set.Rdata, i, value)
			set.Owners = slices.Insert(set.Owners, i, []*Ref{by})
		case !slices.ContainsFunc(set.Owners[i], by.isSame):
			set.Owners[i] = append(set.Owners[i], by)
		}
	}
}

// newRRset is an RRset that one object declares. Its slices are clipped: growing one makes a copy.
func (r *zoneRevision) newRRset(declared rrset.RRset, by *Ref) RRset {
	declared.Rdata = slices.Clip(declared.Rdata)
	return RRset{RRset: declared, Owners: r.soleOwners(by, len(declared.Rdata))}
}

// uniteSpelling adds how a later declaration spells values to the spelling of an RRset; what is known stays as the older spells it.
func uniteSpelling(older *rrset.Spelling, declared rrset.RRset) *rrset.Spelling {
	if declared.Spelling == nil {
		return older
	}
	name, rdata := declared.Name, maps.Clone(declared.Spelling.Rdata)
	if older != nil {
		name = older.Name
		if rdata == nil {
			rdata = map[string]string{}
		}
		maps.Copy(rdata, older.Rdata)
	}
	return rrset.NewSpelling(declared.Key, name, rdata)
}

// soleOwners are the owners of n values that one object declares. Nearly all RRsets of a large zone have one value of one object.
func (r *zoneRevision) soleOwners(by *Ref, n int) [][]*Ref {
	h := r.fresh
	if h == nil || len(h.refs) == cap(h.refs) || cap(h.owners)-len(h.owners) < n {
		return slices.Repeat([][]*Ref{{by}}, n)
	}
	h.refs = append(h.refs, by)
	ref := slices.Clip(h.refs[len(h.refs)-1:])
	start := len(h.owners)
	for range n {
		h.owners = append(h.owners, ref)
	}
	return slices.Clip(h.owners[start:])
}

// lowerTTL gives an RRset that objects declare with different TTLs the lowest one.
func (d *groupDecision) lowerTTL(set *RRset, ttl uint32, by *Ref) {
	if ttl < set.TTL {
		set.TTL = ttl
		d.lowest[set.Key] = by
	} else if _, known := d.lowest[set.Key]; !known {
		d.lowest[set.Key] = set.Owners[0][0] // All before had one TTL; the oldest owner of a value stands for them.
	}
}

// declareApex adds what the zone object itself declares: its NS RRset, and addresses of the name servers inside it.
func (d *groupDecision) declareApex() {
	apex := d.tree.apex
	for _, server := range d.Servers {
		d.addRRset(apex, rrset.Key{Name: apex.name, Type: dns.TypeNS}, d.TTL, []string{server}, d.ref)
		if rrset.IsSubdomain(server, apex.name) {
			d.hosts[d.tree.nodeAt(server)] = d.ref
			d.addAddresses(server, d.Addresses[server])
		}
	}
}

func (d *groupDecision) addAddresses(server string, addresses []netip.Addr) {
	for _, a := range addresses {
		key := rrset.Key{Name: server, Type: dns.TypeAAAA}
		if a.Is4() {
			key.Type = dns.TypeA
		}
		d.addRRset(d.tree.nodeAt(server), key, d.TTL, []string{a.String()}, d.ref)
	}
}

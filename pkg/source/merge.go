package source

import (
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// add unites values with an RRset of the zone.
func (b *builder) add(key rrset.Key, ttl uint32, rdata []string, by Ref) {
	set, exists := b.zone.RRsets[key]
	if !exists {
		b.zone.RRsets[key] = RRset{
			RRset:  rrset.RRset{Key: key, TTL: ttl, Rdata: slices.Clip(rdata)}, // Clipped: growing it makes a copy.
			Owners: b.solely(by, len(rdata)),
		}
		return
	}
	if ttl != set.TTL {
		b.lower(&set, ttl, by)
	}
	for _, value := range rdata {
		i, found := slices.BinarySearch(set.Rdata, value)
		switch {
		case !found:
			set.Rdata = slices.Insert(set.Rdata, i, value)
			set.Owners = slices.Insert(set.Owners, i, []Ref{by})
		case !slices.Contains(set.Owners[i], by):
			set.Owners[i] = append(set.Owners[i], by)
		}
	}
	b.zone.RRsets[key] = set
}

// solely gives owners of n values that one object declares. They are cut from two long slices, since nearly all RRsets
// of a large zone have one value of one object.
func (b *builder) solely(by Ref, n int) [][]Ref {
	b.refs = append(b.refs, by)
	ref := slices.Clip(b.refs[len(b.refs)-1:])
	start := len(b.owners)
	for range n {
		b.owners = append(b.owners, ref)
	}
	return slices.Clip(b.owners[start:])
}

// lower gives an RRset that objects declare with different TTLs the lowest one.
func (b *builder) lower(set *RRset, ttl uint32, by Ref) {
	if ttl < set.TTL {
		set.TTL = ttl
		b.lowest[set.Key] = by
	} else if _, known := b.lowest[set.Key]; !known {
		b.lowest[set.Key] = set.Owners[0][0] // All before had one TTL; the oldest owner of a value stands for them.
	}
}

package rfc2136

import (
	"cmp"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// updateUnit is what must be sent in one message: the change of one RRset, or of all RRsets of a name where a CNAME is added
// or removed, because BIND silently ignores a CNAME beside other data.
type updateUnit struct {
	keys []rrset.Key
	// first are deletions, then come adds, then the deletions that must follow them (at the apex, whose last NS cannot be
	// deleted).
	first, adds, last []dns.RR
	// requires are the prerequisites; only where others write as well.
	requires []dns.RR
	// bytes is the size of the records, uncompressed.
	bytes int
	rank  unitRank
}

// unitRank orders units over several messages: a name server or mail exchanger in the zone must have its address before
// an NS or MX names it, and a name server must keep it as long as an NS does, or BIND refuses the whole message.
type unitRank int

const (
	addAddress unitRank = iota
	addOther
	nameAddress
	deleteOther
	deleteAddress
)

// messageLimits of one message.
type messageLimits struct{ records, bytes int }

// Each message costs a server a write to its disk, so there are few large ones. One has at most 64 KiB, of which the SOA as it was and
// as it will be, each with two names, and the signature take less than three.
var defaultLimits = messageLimits{records: 2000, bytes: 60 << 10}

// Batches is an upper bound of the messages that Apply needs for the changes if none is refused, hence how far ahead of the current
// serial the wanted one must be. It is 1 if everything certainly fits into one message; it is cheap, and for large changes it may be
// three times too high.
func Batches(changes plan.Changes) int {
	var records, bytes int
	count := func(sets []rrset.RRset, extra int) {
		for _, s := range sets {
			records += extra + len(s.Rdata)
			bytes += (extra + len(s.Rdata)) * (len(s.Name) + recordOverhead)
			for _, data := range s.Rdata {
				bytes += len(data)
			}
		}
	}
	count(changes.Create, 0)
	count(changes.UpdateOld, 0)
	count(changes.UpdateNew, 1)
	for _, s := range changes.Delete {
		if s.Type == dns.TypeNS { // Perhaps one by one.
			count([]rrset.RRset{s}, 0)
			continue
		}
		records, bytes = records+1, bytes+len(s.Name)+recordOverhead
	}
	// Two consecutive messages always hold more than the limit of one.
	lim := defaultLimits
	return 1 + 2*(records*lim.bytes+bytes*lim.records)/(lim.records*lim.bytes)
}

// recordOverhead is at least what a record takes on the wire beyond the text of its name and rdata: the header's ten
// bytes, the root label, and sixteen for an address like "::".
const recordOverhead = 27

// unitsOf divides the changes into units, in the order in which they are to be sent. RRsets that cannot be expressed as records are
// refused.
func unitsOf(t Target, changes plan.Changes, lim messageLimits) ([]updateUnit, map[rrset.Key]error) {
	refused := map[rrset.Key]error{}
	var all []updateUnit
	collect := func(u updateUnit, err error) {
		if err != nil {
			refused[u.keys[0]] = err
			return
		}
		all = append(all, u)
	}
	for _, s := range changes.Delete {
		collect(deletionUnit(t.Zone, s))
	}
	for i, s := range changes.UpdateNew {
		collect(replacementUnit(t.Zone, changes.UpdateOld[i], s))
	}
	for _, s := range changes.Create {
		collect(creationUnit(s))
	}
	if all = joinAtCNAME(all); t.Group != nil {
		all = joinGroups(all, t.Group)
	}
	if !slices.IsSortedFunc(all, updateUnit.compare) { // It is if all is new and of one kind, as most that is much.
		slices.SortStableFunc(all, updateUnit.compare)
	}
	if t.Shared {
		return addPrerequisites(all, changes, refused), refused
	}
	var fitting []updateUnit
	for _, u := range all {
		fitting = append(fitting, u.splitToFit(lim)...)
	}
	return fitting, refused
}

func creationUnit(s rrset.RRset) (updateUnit, error) {
	u := updateUnit{keys: []rrset.Key{s.Key}, rank: addOther}
	switch s.Type {
	case dns.TypeA, dns.TypeAAAA:
		u.rank = addAddress
	case dns.TypeNS, dns.TypeMX, dns.TypeDS: // BIND drops a DS without the NS of its delegation.
		u.rank = nameAddress
	}
	adds, err := toRecords(s, s.Rdata)
	u.adds = adds
	return u.withSize(), err
}

func deletionUnit(zone string, s rrset.RRset) (updateUnit, error) {
	u := updateUnit{keys: []rrset.Key{s.Key}, rank: deleteOther}
	switch s.Type {
	case dns.TypeA, dns.TypeAAAA:
		u.rank = deleteAddress
	case dns.TypeNS:
		u.rank = nameAddress
	}
	if isApexNS(zone, s.Key) {
		values, err := toRecords(s, s.Rdata)
		u.last = toDeletions(values)
		return u.withSize(), err
	}
	u.first = []dns.RR{deleteRRset(s.Key)}
	return u.withSize(), nil
}

// replacementUnit sends only the values that differ, unless the TTL changes: then the whole RRset is replaced, because
// servers differ in what happens to the TTL of the other values.
func replacementUnit(zone string, old, s rrset.RRset) (updateUnit, error) {
	u, err := creationUnit(s)
	if err != nil {
		return u, err
	}
	switch {
	case old.TTL == s.TTL || isApexNS(zone, s.Key):
		gone, err := toRecords(old, valuesNotIn(old.Rdata, s.Rdata))
		if err != nil {
			return u, err
		}
		u.first = toDeletions(gone)
		if old.TTL == s.TTL {
			if u.adds, err = toRecords(s, valuesNotIn(s.Rdata, old.Rdata)); err != nil {
				return u, err
			}
		}
		if isApexNS(zone, s.Key) {
			u.first, u.last = nil, u.first
			if old.TTL != s.TTL && len(valuesNotIn(s.Rdata, old.Rdata)) == 0 {
				u.changeTTL(s)
			}
		}
	default:
		u.first = []dns.RR{deleteRRset(s.Key)}
	}
	return u.withSize(), nil
}

// changeTTL adds a record for a moment, because NS records at an apex cannot all be deleted to come back with another TTL. BIND changes
// the TTL when a record is added that is there; Knot ignores that record, and changes the TTL of all with a new one.
func (u *updateUnit) changeTTL(s rrset.RRset) {
	passing := &dns.NS{Hdr: dns.RR_Header{Name: s.Name, Rrtype: dns.TypeNS, Class: dns.ClassINET, Ttl: s.TTL}, Ns: "passing.invalid."}
	u.adds = append(u.adds, passing)
	u.last = append(u.last, toDeletions([]dns.RR{passing})...)
}

// joinAtCNAME merges the units of every name at which a CNAME and something else change.
func joinAtCNAME(all []updateUnit) []updateUnit {
	aliases := map[string]int{} // Index of the merged unit by name with a changing CNAME; -1 before there is one.
	for _, u := range all {
		if u.keys[0].Type == dns.TypeCNAME {
			aliases[u.keys[0].Name] = -1
		}
	}
	if len(aliases) == 0 {
		return all
	}
	var out []updateUnit
	for _, u := range all {
		at, tied := aliases[u.keys[0].Name]
		switch {
		case tied && at >= 0:
			out[at].merge(u)
			continue
		case tied:
			aliases[u.keys[0].Name] = len(out)
		}
		out = append(out, u)
	}
	return out
}

// joinGroups merges the units of each group.
func joinGroups(all []updateUnit, group func(rrset.Key) string) (out []updateUnit) {
	at := map[string]int{}
	for _, u := range all {
		of := group(u.keys[0])
		if i, known := at[of]; known {
			out[i].merge(u)
			continue
		}
		at[of] = len(out)
		out = append(out, u)
	}
	return out
}

// compare orders units as they are to be sent.
func (u updateUnit) compare(o updateUnit) int {
	if u.rank != o.rank {
		return cmp.Compare(u.rank, o.rank)
	}
	return u.keys[0].Compare(o.keys[0])
}

func (u *updateUnit) merge(o updateUnit) {
	u.keys = append(u.keys, o.keys...)
	u.first = append(u.first, o.first...)
	u.adds = append(u.adds, o.adds...)
	u.last = append(u.last, o.last...)
	u.bytes += o.bytes
	if o.rank == addAddress || u.rank != addAddress && o.rank > u.rank {
		u.rank = o.rank
	}
}

func (u updateUnit) recordCount() int {
	return len(u.requires) + len(u.first) + len(u.adds) + len(u.last)
}

func (u updateUnit) withSize() updateUnit {
	u.bytes = 0
	for _, rrs := range [][]dns.RR{u.requires, u.first, u.adds, u.last} {
		for _, rr := range rrs {
			u.bytes += dns.Len(rr)
		}
	}
	return u
}

// splitToFit splits a unit that is too large for one message into several, deletions first.
func (u updateUnit) splitToFit(lim messageLimits) []updateUnit {
	if u.recordCount() <= lim.records && u.bytes <= lim.bytes {
		return []updateUnit{u}
	}
	var out []updateUnit
	part := updateUnit{keys: u.keys, rank: u.rank}
	place := func(rr dns.RR, section func(*updateUnit) *[]dns.RR) {
		size := dns.Len(rr)
		if part.recordCount() > 0 && (part.recordCount() >= lim.records || part.bytes+size > lim.bytes) {
			out = append(out, part)
			part = updateUnit{keys: u.keys, rank: u.rank}
		}
		*section(&part) = append(*section(&part), rr)
		part.bytes += size
	}
	for _, rr := range u.first {
		place(rr, func(p *updateUnit) *[]dns.RR { return &p.first })
	}
	for _, rr := range u.adds {
		place(rr, func(p *updateUnit) *[]dns.RR { return &p.adds })
	}
	for _, rr := range u.last {
		place(rr, func(p *updateUnit) *[]dns.RR { return &p.last })
	}
	return append(out, part)
}

// packBatches distributes units to messages. Without units there is one message: it has the SOA alone.
func packBatches(units []updateUnit, lim messageLimits) [][]updateUnit {
	var out [][]updateUnit
	from, records, bytes := 0, 0, 0
	for i, u := range units {
		if i > from && (records+u.recordCount() > lim.records || bytes+u.bytes > lim.bytes) {
			out = append(out, units[from:i])
			from, records, bytes = i, 0, 0
		}
		records += u.recordCount()
		bytes += u.bytes
	}
	return append(out, units[from:])
}

func isApexNS(zone string, k rrset.Key) bool { return k.Type == dns.TypeNS && k.Name == zone }

func valuesNotIn(values, others []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return slices.Contains(others, v) })
}

func toRecords(s rrset.RRset, rdata []string) ([]dns.RR, error) {
	out := make([]dns.RR, 0, len(rdata))
	for _, data := range rdata {
		rr, err := s.ToRR(data)
		if err != nil {
			return nil, err
		}
		out = append(out, rr)
	}
	return out, nil
}

// toDeletions makes "delete an RR from an RRset" of each record (RFC 2136 section 2.5.4).
func toDeletions(rrs []dns.RR) []dns.RR {
	out := make([]dns.RR, 0, len(rrs))
	for _, rr := range rrs {
		c := dns.Copy(rr)
		c.Header().Class, c.Header().Ttl = dns.ClassNONE, 0
		out = append(out, c)
	}
	return out
}

// deleteRRset makes "delete an RRset" (RFC 2136 section 2.5.2).
func deleteRRset(k rrset.Key) dns.RR {
	return &dns.ANY{Hdr: dns.RR_Header{Name: k.Name, Rrtype: k.Type, Class: dns.ClassANY}}
}

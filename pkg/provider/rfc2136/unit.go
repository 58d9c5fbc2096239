package rfc2136

import (
	"cmp"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// unit is the least that is sent together: the change of one RRset, or of all RRsets of a name where a CNAME comes or
// goes, because there neither order nor separation would do (BIND ignores a CNAME beside other data without a word).
type unit struct {
	keys []rrset.Key
	// first are deletions, then adds, then the deletions that must follow them (at the apex, whose last NS cannot be
	// deleted).
	first, adds, last []dns.RR
	// bytes is the size of the records, uncompressed.
	bytes int
	rank  rank
}

// rank orders units over several messages: a name server or mail exchanger in the zone must have its address before it is
// named, and a name server keep it until it is named no more, or BIND refuses the whole message.
type rank int

const (
	addAddress rank = iota
	addOther
	nameAddress
	deleteOther
	deleteAddress
)

// limits of one message.
type limits struct{ records, bytes int }

// BIND's throughput rises up to about 500 records a message; a message holds at most 64 KiB.
var defaultLimits = limits{records: 1000, bytes: 48 << 10}

// Batches is at least how many messages Apply needs for the changes when none is refused, hence how far ahead of the
// present serial the one that it is given must be. It is 1 when everything fits into one message for sure; it is cheap
// to ask for, and for large changes may be three times too high.
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
		if s.Type == dns.TypeNS { // perhaps one by one
			count([]rrset.RRset{s}, 0)
			continue
		}
		records, bytes = records+1, bytes+len(s.Name)+recordOverhead
	}
	// Two messages in a row hold more than one alone could.
	lim := defaultLimits
	return 1 + 2*(records*lim.bytes+bytes*lim.records)/(lim.records*lim.bytes)
}

// recordOverhead is at least what a record takes on the wire beyond the text of its name and rdata: the header's ten
// bytes, the root label, and sixteen for an address like "::".
const recordOverhead = 27

// units turns changes into units, in the order in which they are to be sent. RRsets that cannot be expressed as records
// are returned as refused.
func units(zone string, changes plan.Changes, lim limits) ([]unit, map[rrset.Key]error) {
	refused := map[rrset.Key]error{}
	var all []unit
	collect := func(u unit, err error) {
		if err != nil {
			refused[u.keys[0]] = err
			return
		}
		all = append(all, u)
	}
	for _, s := range changes.Delete {
		collect(deletion(zone, s))
	}
	for i, s := range changes.UpdateNew {
		collect(replacement(zone, changes.UpdateOld[i], s))
	}
	for _, s := range changes.Create {
		collect(creation(s))
	}
	all = tieAtCNAME(all)
	slices.SortStableFunc(all, func(a, b unit) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.keys[0].Compare(b.keys[0]))
	})
	var fitting []unit
	for _, u := range all {
		fitting = append(fitting, u.split(lim)...)
	}
	return fitting, refused
}

func creation(s rrset.RRset) (unit, error) {
	u := unit{keys: []rrset.Key{s.Key}, rank: addOther}
	switch s.Type {
	case dns.TypeA, dns.TypeAAAA:
		u.rank = addAddress
	case dns.TypeNS, dns.TypeMX:
		u.rank = nameAddress
	}
	adds, err := records(s, s.Rdata)
	u.adds = adds
	return u.measured(), err
}

func deletion(zone string, s rrset.RRset) (unit, error) {
	u := unit{keys: []rrset.Key{s.Key}, rank: deleteOther}
	switch s.Type {
	case dns.TypeA, dns.TypeAAAA:
		u.rank = deleteAddress
	case dns.TypeNS:
		u.rank = nameAddress
	}
	if isApexNS(zone, s.Key) {
		values, err := records(s, s.Rdata)
		u.last = deletions(values)
		return u.measured(), err
	}
	u.first = []dns.RR{wholeRRset(s.Key)}
	return u.measured(), nil
}

// replacement sends only the values that differ, unless the TTL changes: then the whole RRset is replaced, because
// what becomes of the TTL of values that are not mentioned is up to the server.
func replacement(zone string, old, s rrset.RRset) (unit, error) {
	u, err := creation(s)
	if err != nil {
		return u, err
	}
	switch {
	case old.TTL == s.TTL || isApexNS(zone, s.Key):
		gone, err := records(old, without(old.Rdata, s.Rdata))
		if err != nil {
			return u, err
		}
		u.first = deletions(gone)
		if old.TTL == s.TTL {
			if u.adds, err = records(s, without(s.Rdata, old.Rdata)); err != nil {
				return u, err
			}
		}
		if isApexNS(zone, s.Key) {
			u.first, u.last = nil, u.first
		}
	default:
		u.first = []dns.RR{wholeRRset(s.Key)}
	}
	return u.measured(), nil
}

// tieAtCNAME joins the units of every name at which a CNAME and something else change.
func tieAtCNAME(all []unit) []unit {
	aliases := map[string]int{} // names with a changing CNAME → where their joined unit is, once there is one
	for _, u := range all {
		if u.keys[0].Type == dns.TypeCNAME {
			aliases[u.keys[0].Name] = -1
		}
	}
	if len(aliases) == 0 {
		return all
	}
	var out []unit
	for _, u := range all {
		at, tied := aliases[u.keys[0].Name]
		switch {
		case tied && at >= 0:
			out[at].join(u)
			continue
		case tied:
			aliases[u.keys[0].Name] = len(out)
		}
		out = append(out, u)
	}
	return out
}

func (u *unit) join(o unit) {
	u.keys = append(u.keys, o.keys...)
	u.first = append(u.first, o.first...)
	u.adds = append(u.adds, o.adds...)
	u.last = append(u.last, o.last...)
	u.bytes += o.bytes
	if o.rank == addAddress || u.rank != addAddress && o.rank > u.rank {
		u.rank = o.rank
	}
}

func (u unit) records() int { return len(u.first) + len(u.adds) + len(u.last) }

func (u unit) measured() unit {
	u.bytes = 0
	for _, rrs := range [][]dns.RR{u.first, u.adds, u.last} {
		for _, rr := range rrs {
			u.bytes += dns.Len(rr)
		}
	}
	return u
}

// split cuts a unit that is too large for one message into several, deletions first.
func (u unit) split(lim limits) []unit {
	if u.records() <= lim.records && u.bytes <= lim.bytes {
		return []unit{u}
	}
	var out []unit
	part := unit{keys: u.keys, rank: u.rank}
	place := func(rr dns.RR, section func(*unit) *[]dns.RR) {
		size := dns.Len(rr)
		if part.records() > 0 && (part.records() >= lim.records || part.bytes+size > lim.bytes) {
			out = append(out, part)
			part = unit{keys: u.keys, rank: u.rank}
		}
		*section(&part) = append(*section(&part), rr)
		part.bytes += size
	}
	for _, rr := range u.first {
		place(rr, func(p *unit) *[]dns.RR { return &p.first })
	}
	for _, rr := range u.adds {
		place(rr, func(p *unit) *[]dns.RR { return &p.adds })
	}
	for _, rr := range u.last {
		place(rr, func(p *unit) *[]dns.RR { return &p.last })
	}
	return append(out, part)
}

// batches fills messages with units. Without units there is one message: it carries the SOA alone.
func batches(units []unit, lim limits) [][]unit {
	var out [][]unit
	from, records, bytes := 0, 0, 0
	for i, u := range units {
		if i > from && (records+u.records() > lim.records || bytes+u.bytes > lim.bytes) {
			out = append(out, units[from:i])
			from, records, bytes = i, 0, 0
		}
		records += u.records()
		bytes += u.bytes
	}
	return append(out, units[from:])
}

func isApexNS(zone string, k rrset.Key) bool { return k.Type == dns.TypeNS && k.Name == zone }

func without(values, others []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return slices.Contains(others, v) })
}

func records(s rrset.RRset, rdata []string) ([]dns.RR, error) {
	out := make([]dns.RR, 0, len(rdata))
	for _, data := range rdata {
		rr, err := rrset.ToRR(s.Key, s.TTL, data)
		if err != nil {
			return nil, err
		}
		out = append(out, rr)
	}
	return out, nil
}

// deletions makes "delete an RR from an RRset" of each record (RFC 2136 section 2.5.4).
func deletions(rrs []dns.RR) []dns.RR {
	out := make([]dns.RR, 0, len(rrs))
	for _, rr := range rrs {
		c := dns.Copy(rr)
		c.Header().Class, c.Header().Ttl = dns.ClassNONE, 0
		out = append(out, c)
	}
	return out
}

// wholeRRset is "delete an RRset" (RFC 2136 section 2.5.2).
func wholeRRset(k rrset.Key) dns.RR {
	return &dns.ANY{Hdr: dns.RR_Header{Name: k.Name, Rrtype: k.Type, Class: dns.ClassANY}}
}

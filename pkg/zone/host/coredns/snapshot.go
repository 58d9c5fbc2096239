package coredns

import (
	"errors"
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/parallel"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// entry is a key as it was read.
type entry struct {
	key   string
	value value
	// modified is the revision at which it was written last.
	modified int64
	// broken is true if CoreDNS cannot read the value: it answers no question for which it reads the key.
	broken bool
}

// snapshot is everything at and below a zone's key at one revision.
type snapshot struct {
	layout
	revision int64
	// entries are sorted by key.
	entries []entry
	// memory has what is read and what follows from it.
	memory *outbound.Reservation
	// visits counts the entries that answers were made of, and failed is why no more are made.
	visits atomic.Int64
	failed atomic.Pointer[error]
}

// errNested is a zone whose answers are far more than its values: CoreDNS answers for a name with everything below it.
var errNested = errors.New("too many values are below each other's keys, so that CoreDNS answers for each of many names with many of them")

// rdataSize is what rdata of an answer takes, beside its text.
const rdataSize = 64

// visit counts entries, and reports whether these were few enough: each entry is visited by the names above it, of which a zone has few.
func (s *snapshot) visit(n int) bool {
	if s.visits.Add(int64(n)) > 16*int64(len(s.entries))+100_000 {
		s.failed.CompareAndSwap(nil, &errNested)
	}
	return s.failed.Load() == nil
}

// take takes the memory of an answer, and reports whether there was enough.
func (s *snapshot) take(set rrset.RRset) bool {
	size := int64(0)
	for _, rdata := range set.Rdata {
		size += int64(len(rdata)) + rdataSize
	}
	if err := s.memory.Add(size); err != nil {
		s.failed.CompareAndSwap(nil, &err)
	}
	return s.failed.Load() == nil
}

func newEntry(key string, raw []byte, modified int64) entry {
	v, ok := decodeJSON(raw)
	return entry{key: key, value: v, modified: modified, broken: !ok}
}

func (s *snapshot) hasForeign() bool {
	return slices.ContainsFunc(s.entries, func(e entry) bool { return !s.isOurs(e) })
}

// isOurs reports whether a value was written for this zone by this owner.
func (l layout) isOurs(e entry) bool {
	m := e.value.Marker
	return !e.broken && m.Owner == l.owner && m.Zone == l.zone
}

// isOfZoneBelow reports whether a value was written for a zone whose apex is below this one's.
func (l layout) isOfZoneBelow(e entry) bool {
	m := e.value.Marker
	return !e.broken && m.Zone != l.zone && rrset.IsSubdomain(m.Zone, l.zone)
}

// find is where a key is, or would be.
func (s *snapshot) find(key string) (int, bool) {
	return sort.Find(len(s.entries), func(i int) int { return strings.Compare(key, s.entries[i].key) })
}

func (s *snapshot) at(key string) (entry, bool) {
	if i, found := s.find(key); found {
		return s.entries[i], true
	}
	return entry{}, false
}

// below are the entries whose keys begin with a path and a slash.
func (s *snapshot) below(path string) []entry {
	path += "/"
	from, _ := s.find(path)
	size := sort.Search(len(s.entries)-from, func(i int) bool { return !strings.HasPrefix(s.entries[from+i].key, path) })
	return s.entries[from : from+size]
}

// keyOf is the RRset that a value belongs to: of ours what its marker says, of others what it looks like.
func (s *snapshot) keyOf(e entry) rrset.Key {
	name := s.nameOf(e.key)
	if s.isOurs(e) {
		rrtype := dns.StringToType[e.value.Marker.Type]
		if i := strings.LastIndexByte(e.key, '/'); strings.HasPrefix(e.key[i+1:], "!") {
			name = s.nameOf(e.key[:i])
		}
		return rrset.Key{Name: s.ownerOf(name), Type: rrtype}
	}
	return rrset.Key{Name: name, Type: s.foreignType(e.value)}
}

func (s *snapshot) foreignType(v value) uint16 {
	kind, address := kindOf(v)
	switch {
	case address:
		return kind
	case kind == dns.TypeTXT:
		return dns.TypeTXT
	case v.Mail:
		return dns.TypeMX
	case v.Port != 0:
		return dns.TypeSRV
	case rrset.IsSubdomain(s.zone, "arpa."):
		return dns.TypePTR
	}
	return dns.TypeCNAME
}

// expectation is what a zone holds after an Apply if nobody else changes it, and what CoreDNS answers then, which is found out while the
// transactions are under way. It stands for nothing that was not read: what is read has to be the same, value by value.
type expectation struct {
	after   *snapshot
	content *content
	err     error
	// wait returns when the other fields are there.
	wait func()
}

// expect begins to find out what CoreDNS answers from a snapshot when ours are the wanted values.
func expect(s *snapshot, want []keyValue) *expectation {
	e := &expectation{}
	e.wait = parallel.Start(func() {
		e.after = s.after(want)
		e.content, e.err = newContent(e.after)
	})
	return e
}

// contentOf is what CoreDNS answers from what was read; e may be nil.
func (e *expectation) contentOf(read *snapshot) (*content, error) {
	if e != nil {
		if e.wait(); e.err == nil && e.after.hasValuesOf(read) {
			return e.content, nil
		}
	}
	return newContent(read)
}

// hasValuesOf compares keys and values, not revisions.
func (s *snapshot) hasValuesOf(o *snapshot) bool {
	return slices.EqualFunc(s.entries, o.entries, func(a, b entry) bool {
		return a.key == b.key && a.value == b.value && a.broken == b.broken
	})
}

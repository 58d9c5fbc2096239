package observe

import (
	"fmt"
	"maps"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/snapshot"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// maxTypes is how many types of records an owner name may have. named takes at most 100 (max-types-per-name).
const maxTypes = 256

// mirrorEdit is the content of a mirror under construction. Whatever the order of the records, its cost is that of their
// number: an RRset of which records come one by one stays open, and is put together at the end.
type mirrorEdit struct {
	*snapshot.Edit[rrset.Key, rrset.RRset]
	counts

	zone   string
	opened map[rrset.Key]*openRRset
}

// counts are what the RRsets of a mirror count and take, and how many are delegations or DNAMEs.
type counts struct {
	records, cuts int
	bytes         int64
}

// add counts an RRset of a zone, or no longer counts it if sign is -1.
func (c *counts) add(zone string, s rrset.RRset, sign int) {
	c.records += sign * len(s.Rdata)
	c.bytes += int64(sign) * sizeOf(s)
	if s.Type == dns.TypeDNAME || s.Type == dns.TypeNS && s.Name != zone {
		c.cuts += sign
	}
}

// openRRset is an RRset that grows and shrinks record by record.
type openRRset struct {
	ttl   uint32
	rdata map[string]struct{}
}

// beginEdit starts the mirror that follows from m, which may be the zero Mirror.
func (m *Mirror) beginEdit() *mirrorEdit {
	e := &mirrorEdit{counts: m.counts, zone: m.Zone, opened: map[rrset.Key]*openRRset{}}
	if m.Len() == 0 {
		e.Edit = snapshot.New[rrset.Key, rrset.RRset](hashByName).Edit()
	} else {
		e.Edit = m.content.Edit()
	}
	return e
}

// addRecords adds records, runs of them of the same RRset. One that comes in one run need not be opened. It shares what it has in
// common with like (which may be nil).
func (e *mirrorEdit) addRecords(records []wire.Record, like *Mirror) error {
	for run := range groupByRRset(records) {
		types, known := e.typesAt(run[0].Key)
		if known || e.opened[run[0].Key] != nil { // Records of it have come before.
			e.open(run[0].Key).add(run...)
			continue
		}
		s := rrset.New(run[0].Key, run[0].TTL, rdataOf(run)...)
		if like != nil {
			if twin, ok := like.Get(s.Key); ok && twin.Equal(s) {
				s = twin
			}
		}
		if err := checkTypes(s.Name, types+1); err != nil {
			return err
		}
		e.insert(s)
	}
	return nil
}

// typesAt counts the RRsets at an owner name. It reports whether the one of the key is among them.
func (e *mirrorEdit) typesAt(key rrset.Key) (types int, known bool) {
	for at := range e.Near(key) {
		if at.Name == key.Name {
			types++
			known = known || at.Type == key.Type
		}
	}
	return types, known
}

// checkTypes fails if an owner name has too many types.
func checkTypes(name string, types int) error {
	if types > maxTypes {
		return &wire.LimitError{Subject: name, What: fmt.Sprintf("%d types of records", maxTypes)}
	}
	return nil
}

// open prepares an RRset for changes record by record.
func (e *mirrorEdit) open(key rrset.Key) *openRRset {
	s := e.opened[key]
	if s == nil {
		known, _ := e.Get(key)
		s = &openRRset{ttl: known.TTL, rdata: make(map[string]struct{}, len(known.Rdata))}
		for _, rdata := range known.Rdata {
			s.rdata[rdata] = struct{}{}
		}
		e.opened[key] = s
	}
	return s
}

// add adds records; their TTL becomes that of the RRset.
func (s *openRRset) add(records ...wire.Record) {
	s.ttl = records[0].TTL
	for _, r := range records {
		s.rdata[r.Rdata] = struct{}{}
	}
}

// remove removes a record, and reports whether it was there.
func (s *openRRset) remove(r wire.Record) bool {
	_, there := s.rdata[r.Rdata]
	delete(s.rdata, r.Rdata)
	return there
}

// put puts a complete RRset, or removes one that is empty. It fails if the owner name has too many types then.
func (e *mirrorEdit) put(s rrset.RRset) error {
	if types, known := e.typesAt(s.Key); !known {
		if err := checkTypes(s.Name, types+1); err != nil {
			return err
		}
	}
	e.replace(s)
	return nil
}

func (e *mirrorEdit) replace(s rrset.RRset) {
	if known, ok := e.Get(s.Key); ok {
		e.add(e.zone, known, -1)
	}
	if len(s.Rdata) == 0 {
		e.Delete(s.Key)
		return
	}
	e.insert(s)
}

// insert puts an RRset that is not empty and takes the place of none that is counted.
func (e *mirrorEdit) insert(s rrset.RRset) {
	e.add(e.zone, s, 1)
	e.Put(s.Key, s)
}

// Sizes of an RRset and of one of its records in memory, beside their text.
const (
	rrsetOverhead  = 128
	recordOverhead = 16
)

func sizeOf(s rrset.RRset) int64 {
	size := rrsetOverhead + len(s.Name)
	for _, rdata := range s.Rdata {
		size += recordOverhead + len(rdata)
	}
	return int64(size)
}

// mirror ends the edit. The result shares memory with like (which may be nil) where both agree.
func (e *mirrorEdit) mirror(soa rrset.SOA, like *Mirror) (*Mirror, error) {
	for key, s := range e.opened {
		if err := e.put(rrset.New(key, s.ttl, slices.Collect(maps.Keys(s.rdata))...)); err != nil {
			return nil, err
		}
	}
	m := &Mirror{Zone: e.zone, SOA: soa, content: e.Map(), counts: e.counts}
	if like != nil {
		m.content = snapshot.Share(m.content, like.content, rrset.RRset.Equal)
	}
	return m, nil
}

package observe

import (
	"fmt"
	"iter"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/seq"
	"github.com/lockstep-dns/lockstep/pkg/dns/snapshot"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Mirror is the complete content of a zone as one server held it at one serial or, of a server that is read by query, what it
// answered about some names and types (IsPartial). It is immutable. A mirror that follows from an older one by a few changes shares
// nearly all of its memory.
type Mirror struct {
	// Zone is the zone's canonical name.
	Zone string
	// SOA is the zone's start of authority; it is not among the RRsets.
	SOA rrset.SOA

	content content
	counts

	// asked are the names and types that a partial mirror has answers for. era counts the SOAs that these were given under; 0 of a
	// complete mirror. version counts the mirrors before this one.
	asked   askedNames
	era     uint32
	version uint64
}

// content keeps the RRsets of an owner name together: their keys have the same hash.
type content = snapshot.Map[rrset.Key, rrset.RRset]

func hashByName(key rrset.Key) uint64 { return snapshot.String(key.Name) }

// NewMirror returns a mirror of RRsets, among which there must be no SOA.
func NewMirror(zone string, soa rrset.SOA, sets ...rrset.RRset) *Mirror {
	e := (&Mirror{Zone: zone}).beginEdit()
	e.Grow(len(sets))
	for _, s := range sets {
		e.replace(s)
	}
	return &Mirror{Zone: zone, SOA: soa, content: e.Map(), counts: e.counts}
}

// Get finds an RRset, whose Rdata must not be changed.
func (m *Mirror) Get(key rrset.Key) (rrset.RRset, bool) { return m.content.Get(key) }

// All yields every RRset but the SOA, in no particular order.
func (m *Mirror) All() iter.Seq[rrset.RRset] {
	return func(yield func(rrset.RRset) bool) {
		for _, s := range m.content.All() {
			if !yield(s) {
				return
			}
		}
	}
}

// At yields every RRset at an owner name but the SOA, in no particular order. It costs no more than Get.
func (m *Mirror) At(name string) iter.Seq[rrset.RRset] {
	return func(yield func(rrset.RRset) bool) {
		for key, s := range m.content.Near(rrset.Key{Name: name}) {
			if key.Name == name && !yield(s) {
				return
			}
		}
	}
}

// Len counts RRsets, without the SOA.
func (m *Mirror) Len() int { return m.content.Len() }

// HasCuts reports whether there is a delegation or a DNAME.
func (m *Mirror) HasCuts() bool { return m.cuts > 0 }

// SameContent compares the RRsets of two mirrors, not their SOAs.
func (m *Mirror) SameContent(o *Mirror) bool {
	if m.Len() != o.Len() {
		return false
	}
	for range m.ChangedNames(o) {
		return false
	}
	return true
}

// ChangedNames yields the owner names at which m and old differ, whatever their SOA, in no particular order; a name may be
// repeated. Partial mirrors also differ where only one has an answer. If old is nil these are all names. It looks only at what the two do not share, which is little if one follows
// from the other.
func (m *Mirror) ChangedNames(old *Mirror) iter.Seq[string] {
	var before content
	var asked askedNames
	if old != nil {
		before, asked = old.content, old.asked
	}
	differing := seq.Concat(snapshot.Diff(m.content, before, rrset.RRset.Equal), snapshot.Diff(m.asked, asked, isAskedAlike))
	return seq.Map(differing, func(key rrset.Key) string { return key.Name })
}

// mirrorFromRecords makes the mirror of a full transfer. It shares memory with like (which may be nil) where both agree: the mirrors of
// servers that are in sync take the memory of one.
func mirrorFromRecords(zone string, t wire.TransferResult, like *Mirror) (*Mirror, error) {
	e := (&Mirror{Zone: zone}).beginEdit()
	e.Grow(countGroups(t.Records))
	if err := e.addRecords(t.Records, like); err != nil {
		return nil, err
	}
	return e.mirror(t.SOA, like)
}

// groupByRRset yields runs of consecutive records of the same RRset.
func groupByRRset(records []wire.Record) iter.Seq[[]wire.Record] {
	return func(yield func([]wire.Record) bool) {
		for i := 0; i < len(records); {
			j := i + 1
			for j < len(records) && records[j].Key == records[i].Key {
				j++
			}
			if !yield(records[i:j]) {
				return
			}
			i = j
		}
	}
}

func countGroups(records []wire.Record) int {
	n := 0
	for range groupByRRset(records) {
		n++
	}
	return n
}

func rdataOf(records []wire.Record) []string {
	rdata := make([]string, len(records))
	for i, r := range records {
		rdata[i] = r.Rdata
	}
	return rdata
}

// applyDeltas makes the mirror that follows from m by an incremental transfer, and fails if the steps do not begin at m. It shares memory
// with like (which may be nil).
func (m *Mirror) applyDeltas(t wire.TransferResult, like *Mirror) (*Mirror, error) {
	e, soa := m.beginEdit(), m.SOA
	for _, d := range t.Deltas {
		if d.From.Serial != soa.Serial {
			return nil, fmt.Errorf("incremental transfer: a step begins at serial %d, but the content has serial %d", d.From.Serial, soa.Serial)
		}
		for _, r := range d.Deleted {
			if !e.open(r.Key).remove(r) {
				return nil, fmt.Errorf("incremental transfer: a deleted record at %s does not exist", r.Name)
			}
		}
		e.Grow(countGroups(d.Added))
		if err := e.addRecords(d.Added, like); err != nil {
			return nil, err
		}
		soa = d.To
	}
	if soa.Serial != t.SOA.Serial {
		return nil, fmt.Errorf("incremental transfer: ended at serial %d instead of %d", soa.Serial, t.SOA.Serial)
	}
	return e.mirror(soa, like)
}

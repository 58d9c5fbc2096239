package observe

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/snapshot"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// Mirror is the complete content of a zone as one server held it at one serial. It never changes. A mirror made from an
// older one by a few changes shares nearly all of its memory with it.
type Mirror struct {
	// Zone is the zone's canonical name.
	Zone string
	// SOA is the zone's start of authority; it is not among the RRsets.
	SOA rrset.SOA

	content content
}

// content finds what is at an owner name together: all its keys have one hash.
type content = snapshot.Map[rrset.Key, rrset.RRset]

func byName(key rrset.Key) uint64 { return snapshot.String(key.Name) }

// NewMirror makes a mirror of the given RRsets. An SOA RRset must not be among them.
func NewMirror(zone string, soa rrset.SOA, sets ...rrset.RRset) *Mirror {
	e := edit{snapshot.New[rrset.Key, rrset.RRset](byName).Edit()}
	e.Grow(len(sets))
	for _, s := range sets {
		e.put(s)
	}
	return &Mirror{Zone: zone, SOA: soa, content: e.Map()}
}

// Get finds an RRset. Its Rdata must not be changed.
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

// Len is the number of RRsets, the SOA not counted.
func (m *Mirror) Len() int { return m.content.Len() }

// RRsets copies the content into a map of its own: for callers that need one; Get and All cost nothing.
func (m *Mirror) RRsets() map[rrset.Key]rrset.RRset { return maps.Collect(m.content.All()) }

// SameContent tells whether both hold the same RRsets, whatever their SOA.
func (m *Mirror) SameContent(o *Mirror) bool {
	if m.Len() != o.Len() {
		return false
	}
	for range m.ChangedNames(o) {
		return false
	}
	return true
}

// ChangedNames yields the owner names at which m and old hold something else, whatever their SOA, in no particular order;
// a name may come more than once. When old is nil these are all names. It looks only at what the two do not share, so
// that it is cheap when one was made from the other, or both from mirrors of one zone that were in step.
func (m *Mirror) ChangedNames(old *Mirror) iter.Seq[string] {
	var before content
	if old != nil {
		before = old.content
	}
	return func(yield func(string) bool) {
		for key := range snapshot.Diff(m.content, before, rrset.RRset.Equal) {
			if !yield(key.Name) {
				return
			}
		}
	}
}

// edit begins a mirror that follows from m.
func (m *Mirror) edit() edit {
	if m.Len() == 0 { // Also the zero Mirror.
		return edit{snapshot.New[rrset.Key, rrset.RRset](byName).Edit()}
	}
	return edit{m.content.Edit()}
}

// fromRecords makes the mirror of a full transfer. What like (which may be nil) holds as well is shared with it: so the
// mirrors of several servers that are in step take the memory of one.
func fromRecords(zone string, t wire.TransferResult, like *Mirror) *Mirror {
	e := (&Mirror{}).edit()
	e.Grow(countRuns(t.Records))
	for run := range runs(t.Records) {
		e.putRun(run, like)
	}
	return &Mirror{Zone: zone, SOA: t.SOA, content: e.sharing(like)}
}

// runs cuts records into those of one RRset each, as far as they stand together.
func runs(records []wire.Record) iter.Seq[[]wire.Record] {
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

func countRuns(records []wire.Record) int {
	n := 0
	for range runs(records) {
		n++
	}
	return n
}

// apply makes the mirror that follows from m by an incremental transfer, and shares with like (which may be nil) what
// is equal. It fails when the steps do not fit m.
func (m *Mirror) apply(t wire.TransferResult, like *Mirror) (*Mirror, error) {
	e, soa := m.edit(), m.SOA
	for _, d := range t.Deltas {
		if d.From.Serial != soa.Serial {
			return nil, fmt.Errorf("incremental transfer: a step from serial %d, but the content is that of %d", d.From.Serial, soa.Serial)
		}
		for _, r := range d.Deleted {
			if !e.remove(r) {
				return nil, fmt.Errorf("incremental transfer: a deleted record at %s was never there", r.Name)
			}
		}
		for _, r := range d.Added {
			e.putRun([]wire.Record{r}, nil)
		}
		soa = d.To
	}
	if soa.Serial != t.SOA.Serial {
		return nil, fmt.Errorf("incremental transfer: ended at serial %d instead of %d", soa.Serial, t.SOA.Serial)
	}
	return &Mirror{Zone: m.Zone, SOA: soa, content: e.sharing(like)}, nil
}

// edit is the content of a mirror in the making.
type edit struct {
	*snapshot.Edit[rrset.Key, rrset.RRset]
}

func (e edit) put(s rrset.RRset) {
	if len(s.Rdata) == 0 {
		e.Delete(s.Key)
		return
	}
	e.Put(s.Key, s)
}

// putRun adds records of one RRset.
func (e edit) putRun(run []wire.Record, like *Mirror) {
	known, _ := e.Get(run[0].Key)
	rdata := slices.Clone(known.Rdata)
	for _, r := range run {
		rdata = append(rdata, r.Rdata)
	}
	s := rrset.New(run[0].Key, run[0].TTL, rdata...)
	if like != nil {
		if twin, ok := like.Get(s.Key); ok && twin.Equal(s) {
			s = twin
		}
	}
	e.put(s)
}

func (e edit) remove(r wire.Record) bool {
	s, _ := e.Get(r.Key)
	i := slices.Index(s.Rdata, r.Rdata)
	if i < 0 {
		return false
	}
	s.Rdata = slices.Delete(slices.Clone(s.Rdata), i, i+1)
	e.put(s)
	return true
}

// sharing ends the edit; what like (which may be nil) holds as well is shared with it.
func (e edit) sharing(like *Mirror) content {
	if like == nil {
		return e.Map()
	}
	return snapshot.Share(e.Map(), like.content, rrset.RRset.Equal)
}

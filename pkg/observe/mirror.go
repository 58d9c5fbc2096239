package observe

import (
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"math/bits"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// Mirror is the complete content of a zone as one server held it at one serial. It never changes. A mirror made from an
// older one by a few changes shares nearly all of its memory with it.
type Mirror struct {
	// Zone is the zone's canonical name.
	Zone string
	// SOA is the zone's start of authority; it is not among the RRsets.
	SOA rrset.SOA

	shards []shard // a power of two of them; an RRset is in the one that its owner name hashes to
	count  int
}

// A shard is never changed once a Mirror that holds it was handed out: changes go to a copy.
type shard map[rrset.Key]rrset.RRset

// Sizes of shards: small enough that copying one costs microseconds, large enough that there are few.
const (
	shardSize = 128
	maxShards = 4096
)

var seed = maphash.MakeSeed()

// NewMirror makes a mirror of the given RRsets. An SOA RRset must not be among them.
func NewMirror(zone string, soa rrset.SOA, sets ...rrset.RRset) *Mirror {
	e := newEdit(&Mirror{Zone: zone, shards: make([]shard, shardCount(len(sets)))}, soa)
	for _, s := range sets {
		e.put(s)
	}
	return e.mirror
}

// Get finds an RRset. Its Rdata must not be changed.
func (m *Mirror) Get(key rrset.Key) (rrset.RRset, bool) {
	if len(m.shards) == 0 {
		return rrset.RRset{}, false
	}
	s, ok := m.shards[m.index(key.Name)][key]
	return s, ok
}

// All yields every RRset but the SOA, in no particular order.
func (m *Mirror) All() iter.Seq[rrset.RRset] {
	return func(yield func(rrset.RRset) bool) {
		for _, sh := range m.shards {
			for _, s := range sh {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// Len is the number of RRsets, the SOA not counted.
func (m *Mirror) Len() int { return m.count }

// RRsets copies the content into a map of its own: for callers that need one; Get and All cost nothing.
func (m *Mirror) RRsets() map[rrset.Key]rrset.RRset {
	all := make(map[rrset.Key]rrset.RRset, m.count)
	for _, sh := range m.shards {
		maps.Copy(all, sh)
	}
	return all
}

// SameContent tells whether both hold the same RRsets, whatever their SOA.
func (m *Mirror) SameContent(o *Mirror) bool {
	if m.count != o.count {
		return false
	}
	for s := range m.All() {
		if t, ok := o.Get(s.Key); !ok || !s.Equal(t) {
			return false
		}
	}
	return true
}

func (m *Mirror) index(name string) int {
	return int(maphash.String(seed, name) & uint64(len(m.shards)-1)) //nolint:gosec // below maxShards
}

func shardCount(rrsets int) int {
	n := max(1, rrsets/shardSize)
	return min(maxShards, 1<<bits.Len(uint(n-1))) //nolint:gosec // n is positive
}

// fromRecords makes the mirror of a full transfer. What like (which may be nil) holds as well is shared with it: so the
// mirrors of several servers that are in step take the memory of one.
func fromRecords(zone string, t wire.TransferResult, like *Mirror) *Mirror {
	shards := shardCount(len(t.Records))
	if like != nil && shardCount(like.count) == shards {
		shards = max(1, len(like.shards))
	}
	e := newEdit(&Mirror{Zone: zone, shards: make([]shard, shards)}, t.SOA)
	for i := 0; i < len(t.Records); {
		j := i + 1
		for j < len(t.Records) && t.Records[j].Key == t.Records[i].Key {
			j++
		}
		e.putRun(t.Records[i:j], like)
		i = j
	}
	e.share(like)
	return e.mirror
}

// apply makes the mirror that follows from m by an incremental transfer, and shares with like (which may be nil) what
// is equal. It fails when the steps do not fit m.
func (m *Mirror) apply(t wire.TransferResult, like *Mirror) (*Mirror, error) {
	e := newEdit(m, m.SOA)
	for _, d := range t.Deltas {
		if d.From.Serial != e.mirror.SOA.Serial {
			return nil, fmt.Errorf("incremental transfer: a step from serial %d, but the content is that of %d", d.From.Serial, e.mirror.SOA.Serial)
		}
		for _, r := range d.Deleted {
			if !e.remove(r) {
				return nil, fmt.Errorf("incremental transfer: a deleted record at %s was never there", r.Name)
			}
		}
		for _, r := range d.Added {
			e.add(r)
		}
		e.mirror.SOA = d.To
	}
	if e.mirror.SOA.Serial != t.SOA.Serial {
		return nil, fmt.Errorf("incremental transfer: ended at serial %d instead of %d", e.mirror.SOA.Serial, t.SOA.Serial)
	}
	e.share(like)
	return e.finish(), nil
}

// edit is a mirror in the making: it owns the shards that it has copied and may change those alone.
type edit struct {
	mirror *Mirror
	owned  []bool
}

func newEdit(from *Mirror, soa rrset.SOA) *edit {
	shards := slices.Clone(from.shards)
	if len(shards) == 0 {
		shards = make([]shard, 1)
	}
	return &edit{
		mirror: &Mirror{Zone: from.Zone, SOA: soa, shards: shards, count: from.count},
		owned:  make([]bool, len(shards)),
	}
}

// shard gives the shard of an owner name for writing.
func (e *edit) shard(name string) shard {
	i := e.mirror.index(name)
	if !e.owned[i] {
		e.owned[i] = true
		if e.mirror.shards[i] = maps.Clone(e.mirror.shards[i]); e.mirror.shards[i] == nil {
			e.mirror.shards[i] = shard{}
		}
	}
	return e.mirror.shards[i]
}

func (e *edit) put(s rrset.RRset) {
	sh := e.shard(s.Name)
	before := len(sh)
	if len(s.Rdata) == 0 {
		delete(sh, s.Key)
	} else {
		sh[s.Key] = s
	}
	e.mirror.count += len(sh) - before
}

// putRun adds records of one RRset.
func (e *edit) putRun(run []wire.Record, like *Mirror) {
	known, _ := e.mirror.Get(run[0].Key)
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

func (e *edit) add(r wire.Record) { e.putRun([]wire.Record{r}, nil) }

func (e *edit) remove(r wire.Record) bool {
	s, _ := e.mirror.Get(r.Key)
	i := slices.Index(s.Rdata, r.Rdata)
	if i < 0 {
		return false
	}
	s.Rdata = slices.Delete(slices.Clone(s.Rdata), i, i+1)
	e.put(s)
	return true
}

// share replaces the shards that e has made by those of another mirror where they hold the same.
func (e *edit) share(like *Mirror) {
	if like == nil || len(like.shards) != len(e.mirror.shards) {
		return
	}
	for i, owned := range e.owned {
		if owned && maps.EqualFunc(e.mirror.shards[i], like.shards[i], rrset.RRset.Equal) {
			e.mirror.shards[i], e.owned[i] = like.shards[i], false
		}
	}
}

// finish spreads the content over more shards when it has outgrown them.
func (e *edit) finish() *Mirror {
	m := e.mirror
	if want := shardCount(m.count); want > 4*len(m.shards) {
		wide := newEdit(&Mirror{Zone: m.Zone, shards: make([]shard, want)}, m.SOA)
		for s := range m.All() {
			wide.put(s)
		}
		return wide.mirror
	}
	return m
}

package coredns

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Limits of one transaction: etcd's own are 128 operations (--max-txn-ops) and 1.5 MiB (--max-request-bytes).
const (
	maxOperations = 128
	maxBytes      = 1 << 20
)

// operation writes a key, or deletes it if raw is empty, provided that it was last written at a revision; 0 means that there is no
// such key. Without write it only compares.
type operation struct {
	key, raw string
	modified int64
	write    bool
}

// batch is the operations of one transaction.
type batch []operation

// transaction is a batch. If isFresh, nothing is there from its first key to its last, which is then one condition instead of one for
// each key.
type transaction struct {
	batch
	first, last string
	isFresh     bool
}

func (b batch) size() (bytes int) {
	for _, o := range b {
		bytes += 2*len(o.key) + len(o.raw) + 32
	}
	return bytes
}

// compares are the conditions of a transaction.
func (t transaction) compares() []clientv3.Cmp {
	if t.isFresh {
		return []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(t.first), "=", 0).WithRange(t.last + "\x00")}
	}
	compares := make([]clientv3.Cmp, 0, len(t.batch))
	for _, o := range t.batch {
		compares = append(compares, clientv3.Compare(clientv3.ModRevision(o.key), "=", o.modified))
	}
	return compares
}

func (b batch) operations() []clientv3.Op {
	ops := make([]clientv3.Op, 0, len(b))
	for _, o := range b {
		switch {
		case !o.write:
		case o.raw == "":
			ops = append(ops, clientv3.OpDelete(o.key))
		default:
			ops = append(ops, clientv3.OpPut(o.key, o.raw))
		}
	}
	return ops
}

// planned is what Apply does. Transactions may be committed in any order, unless they are ordered.
type planned struct {
	transactions []transaction
	ordered      bool
	refused      map[rrset.Key]error
	// want are the values of ours that the zone then has.
	want []keyValue
}

// plan turns changes into transactions. The values of ours that the zone then has are encoded as a whole, so that each is as the others
// need it.
func (s *snapshot) plan(changes plan.Changes, ours names) planned {
	refused := map[rrset.Key]error{}
	held := s.change(ours, changes, refused)
	want := s.encode(held)
	batches, ordered := packBatches(s.units(want))
	s.explainOthers(changes, want, refused)
	return planned{s.transactions(batches, ordered), ordered, refused, want}
}

// transactions makes a transaction of each batch, in any order unless they are ordered. Those are fresh in whose range there is no value,
// nor a key of another one.
func (s *snapshot) transactions(batches []batch, ordered bool) []transaction {
	all := make([]transaction, len(batches))
	for i, b := range batches {
		byKey := func(a, b operation) int { return strings.Compare(a.key, b.key) }
		all[i] = transaction{batch: b, first: slices.MinFunc(b, byKey).key, last: slices.MaxFunc(b, byKey).key}
	}
	if ordered {
		return all
	}
	slices.SortFunc(all, func(a, b transaction) int { return strings.Compare(a.first, b.first) })
	var before string
	for i := range all {
		t := &all[i]
		from, _ := s.find(t.first)
		to, there := s.find(t.last)
		t.isFresh = from == to && !there && t.first > before && (i+1 == len(all) || t.last < all[i+1].first)
		before = max(before, t.last)
	}
	return all
}

// change applies the changes to our RRsets, without those that are refused: CoreDNS cannot hold them, or a key of theirs is somebody
// else's.
func (s *snapshot) change(ours names, changes plan.Changes, refused map[rrset.Key]error) names {
	next := make(plan.Map, len(ours)+len(changes.Create))
	for _, sets := range ours {
		for _, set := range sets {
			next[set.Key] = set
		}
	}
	for _, set := range changes.Delete {
		delete(next, set.Key)
	}
	wanted := slices.Concat(changes.Create, changes.UpdateNew)
	for _, set := range wanted {
		next[set.Key] = set
	}
	reasons, held := s.unsupported(next)
	shared := s.hasForeign()
	for _, set := range wanted {
		if reason := reasons[set.Key]; reason != "" {
			refused[set.Key] = errors.New(reason)
		} else if !shared {
			continue
		} else if key := s.takenKey(set); key != "" {
			refused[set.Key] = fmt.Errorf("the key %s has a value that Lockstep did not write; delete it in etcd, or the record here", key)
			held[set.Name] = slices.DeleteFunc(held[set.Name], func(o rrset.RRset) bool { return o.Key == set.Key })
		}
	}
	return held
}

// takenKey is a key that an RRset needs and somebody else has; "" if there is none.
func (s *snapshot) takenKey(set rrset.RRset) string {
	for _, v := range s.encode(names{set.Name: {set}}) {
		if e, found := s.at(v.key); found && !s.isOurs(e) {
			return v.key
		}
	}
	return ""
}

// unit is the operations at one name: those that write, and those that compare what stays as it is.
type unit struct{ writes, compares batch }

// units are what has to be written at each name for the zone to have the wanted values, beside what others have, in the order of the
// keys. The values of an RRset that stay as they are are compared too.
func (s *snapshot) units(want []keyValue) []batch {
	all, places := make([]unit, 0, len(want)), make(map[string]int, len(want))
	s.merge(want, func(e *entry, w *keyValue) {
		var o operation
		switch {
		case e == nil:
			o = operation{key: w.key, raw: encodeJSON(&w.value), write: true}
		case !s.isOurs(*e):
			return
		case w == nil:
			o = operation{key: e.key, modified: e.modified, write: true}
		case w.value != e.value:
			o = operation{key: e.key, raw: encodeJSON(&w.value), modified: e.modified, write: true}
		default:
			o = operation{key: e.key, modified: e.modified}
		}
		at, known := places[pathOfName(o.key)]
		if !known {
			at, places[pathOfName(o.key)] = len(all), len(all)
			all = append(all, unit{})
		}
		if o.write {
			all[at].writes = append(all[at].writes, o)
		} else {
			all[at].compares = append(all[at].compares, o)
		}
	})
	units := make([]batch, 0, len(all))
	for _, u := range all {
		switch {
		case len(u.writes) == 0:
		case len(u.writes)+len(u.compares) > maxOperations:
			units = append(units, u.writes)
		default:
			units = append(units, append(u.writes, u.compares...))
		}
	}
	return units
}

// merge calls do for each key of the snapshot or of the wanted values, in order, with what is there and what is wanted: either may be nil.
func (s *snapshot) merge(want []keyValue, do func(*entry, *keyValue)) {
	next := 0
	for i := range want {
		w := &want[i]
		for ; next < len(s.entries) && s.entries[next].key < w.key; next++ {
			do(&s.entries[next], nil)
		}
		if next == len(s.entries) || s.entries[next].key != w.key {
			do(nil, w)
			continue
		}
		do(&s.entries[next], w)
		next++
	}
	for ; next < len(s.entries); next++ {
		do(&s.entries[next], nil)
	}
}

// pathOfName is the path of the name at which a value is kept.
func pathOfName(key string) string {
	if i := strings.LastIndexByte(key, '/'); strings.HasPrefix(key[i+1:], "!") {
		return key[:i]
	}
	return key
}

// packBatches makes transactions, each of as many units as fit. A unit that is too large is divided, what is written before what is
// deleted; then they are ordered.
func packBatches(units []batch) (batches []batch, ordered bool) {
	var packed batch
	bytes := 0
	flush := func() {
		if len(packed) > 0 {
			batches, packed, bytes = append(batches, packed), nil, 0
		}
	}
	add := func(some batch) {
		if size := some.size(); len(packed)+len(some) > maxOperations || bytes+size > maxBytes {
			flush()
		}
		packed, bytes = append(packed, some...), bytes+some.size()
	}
	for _, unit := range units {
		if len(unit) <= maxOperations && unit.size() <= maxBytes {
			add(unit)
			continue
		}
		ordered = true
		slices.SortStableFunc(unit, func(a, b operation) int { return cmp.Compare(deletesLast(a), deletesLast(b)) })
		for _, o := range unit {
			add(batch{o})
		}
	}
	flush()
	return batches, ordered
}

func deletesLast(o operation) int {
	if o.raw == "" {
		return 1
	}
	return 0
}

// after is what is there when ours are the wanted values, without revisions of these.
func (s *snapshot) after(want []keyValue) *snapshot {
	after := &snapshot{layout: s.layout, entries: make([]entry, 0, len(want))}
	s.merge(want, func(e *entry, w *keyValue) {
		switch {
		case e != nil && !s.isOurs(*e):
			after.entries = append(after.entries, *e)
		case w != nil:
			after.entries = append(after.entries, entry{key: w.key, value: w.value})
		}
	})
	return after
}

// explainOthers refuses wanted RRsets that CoreDNS will not answer as they are because of values that others have put there.
func (s *snapshot) explainOthers(changes plan.Changes, want []keyValue, refused map[rrset.Key]error) {
	if !s.hasForeign() {
		return
	}
	after := s.after(want)
	for _, set := range slices.Concat(changes.Create, changes.UpdateNew) {
		if refused[set.Key] != nil {
			continue
		}
		if answered, _ := after.answer(set.Key); !answered.Equal(set) {
			refused[set.Key] = fmt.Errorf("CoreDNS does not answer with it alone because of a value that Lockstep did not write%s; delete that in etcd", after.culprit(set.Key))
		}
	}
}

// culprit names the first value of others that CoreDNS reads for an answer.
func (s *snapshot) culprit(key rrset.Key) string {
	found, _ := s.services(key)
	for _, e := range slices.Concat(found, s.below(s.pathOf(s.placeOf(key)))) {
		if !s.isOurs(e) {
			return ", under the key " + e.key
		}
	}
	return ""
}

package coredns

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/hosttest"
)

// TestFreshTransactions: the one condition of a fresh transaction fails for each of its keys that somebody else writes, and for no key that is
// there or that another transaction writes.
func TestFreshTransactions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	fresh := 0
	for range 2000 {
		s := &snapshot{}
		var batches []batch
		keys := random.Perm(60)
		for range random.IntN(4) {
			s.entries = append(s.entries, entry{key: fmt.Sprintf("/z/%02d", keys[0])})
			keys = keys[1:]
		}
		slices.SortFunc(s.entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
		if random.IntN(3) > 0 { // as they mostly are
			slices.Sort(keys)
		}
		for some := range slices.Chunk(keys[:20], 5) {
			var b batch
			for _, key := range some {
				b = append(b, operation{key: fmt.Sprintf("/z/%02d", key), raw: "{}", write: true})
			}
			batches = append(batches, b)
		}
		all := s.transactions(batches, false)
		for i, a := range all {
			if !a.isFresh {
				continue
			}
			fresh++
			covers := func(key string) bool { return a.first <= key && key <= a.last }
			if slices.ContainsFunc(s.entries, func(e entry) bool { return covers(e.key) }) {
				t.Fatalf("%s to %s is not empty: %+v", a.first, a.last, s.entries)
			}
			for j, b := range all {
				if covered := slices.ContainsFunc(b.batch, func(o operation) bool { return covers(o.key) }); covered != (i == j) {
					t.Fatalf("%s to %s: %+v", a.first, a.last, b)
				}
			}
		}
		if len(all) != len(batches) {
			t.Fatalf("%d transactions of %d batches", len(all), len(batches))
		}
	}
	if fresh < 1000 {
		t.Errorf("only %d are fresh", fresh)
	}
}

// TestUnits: what is written at the names makes of ours what is wanted, changes nothing of others, and compares all that it depends on;
// what is written at one name is in one unit.
func TestUnits(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 5))
		valueAt := func() value {
			return value{Host: "192.0.2.1", TTL: uint32(1 + r.IntN(2)), Marker: marker{Owner: ours.owner, Zone: ours.zone, Type: "A"}}
		}
		s, after, others := &snapshot{layout: ours}, map[string]string{}, map[string]bool{}
		var want []keyValue
		wanted := map[string]string{}
		for i := range 30 {
			key := fmt.Sprintf("/skydns/test/example/n%02d/!A-%d", i/3, i%3)
			if r.IntN(2) == 0 {
				v := valueAt()
				if others[key] = r.IntN(4) == 0; others[key] {
					v.Marker.Owner = "somebody else"
					wanted[key] = encodeJSON(&v)
				}
				s.entries = append(s.entries, entry{key: key, value: v, modified: int64(1 + i)})
				after[key] = encodeJSON(&v)
			}
			if r.IntN(2) == 0 {
				v := valueAt()
				want = append(want, keyValue{key, v})
				if !others[key] {
					wanted[key] = encodeJSON(&v)
				}
			}
		}
		unitOf := map[string]int{}
		for n, unit := range s.units(want) {
			for _, o := range unit {
				e, found := s.at(o.key)
				if before, known := unitOf[pathOfName(o.key)]; known && before != n || others[o.key] || found != (o.modified != 0) || e.modified != o.modified {
					t.Fatalf("seed %d: unit %d has %+v, there is %+v", seed, n, o, e)
				}
				switch unitOf[pathOfName(o.key)] = n; {
				case o.write && o.raw == "":
					delete(after, o.key)
				case o.write:
					after[o.key] = o.raw
				}
			}
		}
		if !maps.Equal(after, wanted) {
			t.Fatalf("seed %d: %v, want %v", seed, after, wanted)
		}
		for _, e := range s.entries { // What stays at a name where something changes is compared.
			n, changed := unitOf[pathOfName(e.key)]
			if changed && !others[e.key] && !slices.ContainsFunc(s.units(want)[n], func(o operation) bool { return o.key == e.key }) {
				t.Fatalf("seed %d: %s is not compared", seed, e.key)
			}
		}
	}
}

// TestExpectation: what is read after an Apply has the content that it has without expectations, whatever anybody has changed meanwhile.
func TestExpectation(t *testing.T) {
	t.Parallel()
	met := 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 6))
		_, held := ours.unsupported(hosttest.RandomZone(r, zone, 1+r.IntN(20)))
		want := ours.encode(held)
		before := snapshotOf(ours, want)
		before.entries = slices.DeleteFunc(before.entries, func(entry) bool { return r.IntN(2) == 0 })
		if len(before.entries) > 0 && r.IntN(2) == 0 {
			before.entries = append(before.entries, newEntry(before.pathOf("zz."+zone)+"/x", []byte(`{"host":"192.0.2.9"}`), 5))
		}
		e := expect(before, want)
		read := before.after(want)
		for i := range read.entries {
			read.entries[i].modified = 9
		}
		if i := r.IntN(len(read.entries) + 1); i < len(read.entries) {
			switch r.IntN(6) {
			case 0:
				read.entries[i].value.TTL++
			case 1:
				read.entries[i].broken = true
			case 2:
				read.entries[i].key += "x"
			case 3:
				read.entries = slices.Delete(read.entries, i, i+1)
			}
		}
		got, err := e.contentOf(read)
		fresh, freshErr := newContent(read)
		if err != nil || freshErr != nil {
			t.Fatal(err, freshErr)
		}
		if got == e.content {
			met++
		}
		if diff := cmp.Diff(allOf(fresh), allOf(got)); diff != "" || !cmp.Equal(fresh.ours, got.ours) {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
	if met < 50 || met > 450 {
		t.Errorf("%d of 500 met their expectation", met)
	}
}

func allOf(c plan.Content) plan.Map {
	return mapOf(slices.Collect(c.All())...)
}

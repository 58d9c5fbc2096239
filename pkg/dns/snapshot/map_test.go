package snapshot

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func sameInt(a, b int) bool { return a == b }

// hashes are good ones and poor ones: all must give the same answers.
var hashes = map[string]func(string) uint64{
	"spread": String,
	"few":    func(s string) uint64 { return String(s[:1]) },
	"one":    func(string) uint64 { return 1<<64 - 1 },
}

// random gives a source of chance that a failing test can be repeated with.
func random(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}

func key(r *rand.Rand, keys int) string { return strconv.Itoa(r.IntN(keys)) }

// check compares a map with what it should hold, by every way of reading it.
func check(t *testing.T, m Map[string, int], want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for k, v := range m.All() {
		if _, twice := got[k]; twice {
			t.Fatalf("%s comes twice", k)
		}
		got[k] = v
		if w, ok := m.Get(k); !ok || w != v {
			t.Fatalf("%s: Get gives %d, %t, All gives %d", k, w, ok, v)
		}
		if near := maps.Collect(m.Near(k)); near[k] != v {
			t.Fatalf("%s is not near itself but %v", k, near)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || m.Len() != len(want) {
		t.Fatalf("%d entries, want %d: %s", m.Len(), len(want), diff)
	}
}

// TestVersions makes versions at random, each from any older one, and looks at all of them in the end.
func TestVersions(t *testing.T) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			r := random(t)
			keys := 1_500
			if name != "spread" {
				keys = 300 // Without a spread everything takes its time.
			}
			versions, want := []Map[string, int]{New[string, int](hash)}, []map[string]int{{}}
			for range 60 {
				from := max(0, len(versions)-1-r.IntN(3)*r.IntN(5))
				e, model := versions[from].Edit(), maps.Clone(want[from])
				if r.IntN(4) == 0 {
					e.Grow(r.IntN(keys))
				}
				removes := r.IntN(4)
				for range r.IntN(1 + r.IntN(keys)) {
					k := key(r, keys)
					if r.IntN(3) < removes {
						e.Delete(k)
						delete(model, k)
					} else {
						v := r.IntN(3)
						e.Put(k, v)
						model[k] = v
					}
					k = key(r, keys)
					v, ok := e.Get(k)
					if w, there := model[k]; v != w || ok != there || e.Len() != len(model) {
						t.Fatalf("%s in an edit: %d, %t, want %d, %t; %d entries, want %d", k, v, ok, w, there, e.Len(), len(model))
					}
				}
				versions, want = append(versions, e.Map()), append(want, maps.Clone(model))
				if r.IntN(3) == 0 { // An edit that goes on after its end leaves its first outcome alone.
					k := key(r, keys)
					e.Put(k, 7)
					model[k] = 7
					versions, want = append(versions, e.Map()), append(want, model)
				}
			}
			for i, m := range versions {
				check(t, m, want[i])
				if v, ok := m.Get("absent"); ok || v != 0 {
					t.Fatal("found what is not there")
				}
			}
			for range 100 {
				a, b := r.IntN(len(versions)), r.IntN(len(versions))
				checkDiff(t, versions[a], versions[b], want[a], want[b])
				shared := Share(versions[a], versions[b], sameInt)
				check(t, shared, want[a])
				checkDiff(t, shared, versions[b], want[a], want[b])
			}
			for i, m := range versions {
				check(t, m, want[i])
			}
		})
	}
}

func checkDiff(t *testing.T, a, b Map[string, int], wantA, wantB map[string]int) {
	t.Helper()
	var want []string
	for k, v := range wantA {
		if w, ok := wantB[k]; !ok || v != w {
			want = append(want, k)
		}
	}
	for k := range wantB {
		if _, ok := wantA[k]; !ok {
			want = append(want, k)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(Diff(a, b, sameInt))); diff != "" {
		t.Fatal(diff)
	}
}

// FuzzMap takes every two bytes as one step: what to do and with which key.
func FuzzMap(f *testing.F) {
	f.Add([]byte("\x00a\x01b\x02a\x03a\x00c"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		m, want := New[string, int](hashes["few"]), map[string]int{}
		e, before, wantBefore := m.Edit(), m, map[string]int{}
		for ; len(steps) >= 2; steps = steps[2:] {
			k := fmt.Sprintf("%03d", steps[1])
			switch steps[0] % 4 {
			case 0, 1:
				e.Put(k, int(steps[0]))
				want[k] = int(steps[0])
			case 2:
				e.Delete(k)
				delete(want, k)
			case 3:
				check(t, before, wantBefore)
				m = e.Map()
				checkDiff(t, before, m, wantBefore, want)
				before, wantBefore = m, maps.Clone(want)
				e = m.Edit()
			}
		}
		check(t, before, wantBefore)
		check(t, e.Map(), want)
	})
}

func TestZeroMap(t *testing.T) {
	var zero Map[string, int]
	check(t, zero, map[string]int{})
	for k := range zero.Near("a") {
		t.Error(k)
	}
	e := New[string, int](String).Edit()
	e.Delete("a")
	e.Put("a", 1)
	one := e.Map()
	checkDiff(t, zero, one, nil, map[string]int{"a": 1})
	checkDiff(t, one, zero, map[string]int{"a": 1}, nil)
	check(t, Share(one, zero, sameInt), map[string]int{"a": 1})
	next := Share(New[string, int](String), zero, sameInt).Edit()
	next.Put("b", 2)
	check(t, next.Map(), map[string]int{"b": 2})
}

func TestIterationsEndEarly(*testing.T) {
	a, b := filled(1000), filled(10)
	for range a.All() {
		break
	}
	for range a.Near("1") {
		break
	}
	for _, o := range []Map[string, int]{b, filled(999), New[string, int](String)} {
		for range Diff(a, o, sameInt) {
			break
		}
		for range Diff(o, a, sameInt) {
			break
		}
	}
}

func filled(n int) Map[string, int] {
	e := New[string, int](String).Edit()
	e.Grow(n)
	for i := range n {
		e.Put(strconv.Itoa(i), i)
	}
	return e.Map()
}

// TestNear: keys that share a hash are found together, and only they.
func TestNear(t *testing.T) {
	e := New[string, int](func(s string) uint64 { return String(s[:3]) }).Edit()
	for i := range 100_000 {
		e.Put(fmt.Sprintf("%05d", i), i)
	}
	got := slices.Sorted(maps.Keys(maps.Collect(e.Map().Near("123, which is not there"))))
	if len(got) != 100 || got[0] != "12300" || got[99] != "12399" {
		t.Error(got)
	}
}

// TestSharedShards: a version has nearly all of its shards in common with the one before, and so have maps made apart
// after Share, whatever their way there.
func TestSharedShards(t *testing.T) {
	const n = 100_000
	apart := func(a, b Map[string, int]) int {
		count := 0
		for i := range a.shards {
			if !sameMemory(a.shards[i], b.shards[i]) {
				count++
			}
		}
		return count
	}
	first := filled(n)
	e := first.Edit()
	e.Put("new", 1)
	next := e.Map()
	if got := apart(first, next); len(first.shards) != 1024 || got != 1 {
		t.Errorf("%d of %d shards are new", got, len(first.shards))
	}
	slow := New[string, int](String).Edit()
	for i := range n {
		slow.Put(strconv.Itoa(i), i)
	}
	twin := Share(slow.Map(), next, sameInt)
	if got := apart(twin, next); got != 1 {
		t.Errorf("%d shards of a twin are its own", got)
	}
	if whole := Share(twin, first, sameInt); &whole.shards[0] != &first.shards[0] {
		t.Error("equal maps do not share the list of shards")
	}
	few := Share(filled(10), first, sameInt)
	if len(few.shards) != 1 {
		t.Errorf("10 entries in %d shards", len(few.shards))
	}
}

// TestShardsFit: however a map came to its size, its shards are few and small.
func TestShardsFit(t *testing.T) {
	e := New[string, int](String).Edit()
	for i := range 400_000 {
		e.Put(strconv.Itoa(i), i)
		if n := len(e.m.shards); i%1000 == 0 && (n > maxShards || (n < maxShards && i > 2*shardSize*2*n)) {
			t.Fatalf("%d entries in %d shards", i, n)
		}
	}
	for i := range 399_990 {
		e.Delete(strconv.Itoa(i))
	}
	m := e.Map()
	if m.Len() != 10 || len(m.shards) > 16 {
		t.Errorf("%d entries in %d shards", m.Len(), len(m.shards))
	}
	for _, s := range m.shards {
		if cap(s) > 2*len(s)+2 {
			t.Errorf("%d entries take the room of %d", len(s), cap(s))
		}
	}
}

// TestReadersAndEditor: readers of any version need no lock while the next one is made (of interest with -race).
func TestReadersAndEditor(t *testing.T) {
	m := filled(5_000)
	var readers sync.WaitGroup
	for i := range 50 {
		before := m
		readers.Go(func() {
			for k := range Diff(before, before, sameInt) {
				t.Error(k)
			}
			total := 0
			for range before.All() {
				total++
			}
			if total != before.Len() {
				t.Errorf("%d entries, not %d", total, before.Len())
			}
		})
		e := m.Edit()
		for j := range 100 {
			e.Put(strconv.Itoa(i*100+j), -1)
			e.Delete(strconv.Itoa(4999 - i*7 - j))
		}
		m = Share(e.Map(), before, sameInt)
	}
	readers.Wait()
}

func BenchmarkEditOne(b *testing.B) {
	m := filled(100_000)
	b.ReportAllocs()
	for b.Loop() {
		e := m.Edit()
		e.Put("50000", 0)
		e.Map()
	}
}

func BenchmarkDiffOne(b *testing.B) {
	m := filled(100_000)
	e := m.Edit()
	e.Put("50000", 0)
	next := e.Map()
	for b.Loop() {
		for range Diff(m, next, sameInt) {
		}
	}
}

func BenchmarkGet(b *testing.B) {
	m, i := filled(100_000), 0
	keys := make([]string, 1024)
	for i := range keys {
		keys[i] = strconv.Itoa(i * 97)
	}
	for b.Loop() {
		m.Get(keys[i&1023])
		i++
	}
}

func BenchmarkFill(b *testing.B) {
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
	}
	for name, grow := range map[string]int{"known size": len(keys), "unknown size": 0} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				e := New[string, int](String).Edit()
				e.Grow(grow)
				for i, k := range keys {
					e.Put(k, i)
				}
				e.Map()
			}
		})
	}
}

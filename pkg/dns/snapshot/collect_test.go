package snapshot

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever is put one by one is the same collected, and can be edited on; some keys come twice, some share a hash.
func TestCollect(t *testing.T) {
	hash := func(k int) uint64 { return uint64(k/3) * 0x9e3779b97f4a7c15 }
	for _, size := range []int{0, 1, 10, 1000, 20000} {
		r := rand.New(rand.NewPCG(uint64(size), 1))
		want, put := map[int]int{}, New[int, int](hash).Edit()
		var entries []Entry[int, int]
		for i := range size {
			k := r.IntN(size)
			want[k] = i
			put.Put(k, i)
			entries = append(entries, Entry[int, int]{k, i})
		}
		got := Collect(hash, entries)
		if diff := cmp.Diff(want, maps.Collect(got.All())); diff != "" || got.Len() != len(want) {
			t.Fatalf("%d of %d entries: %s", got.Len(), size, diff)
		}
		same := func(a, b int) bool { return a == b }
		for k := range Diff(got, put.Map(), same) {
			t.Fatalf("%d differs from what was put", k)
		}
		e := got.Edit()
		for k := range size + 100 {
			e.Put(k, -k)
		}
		for k, v := range e.Map().All() {
			if v != -k {
				t.Fatalf("%d has %d after the edit", k, v)
			}
		}
		if diff := cmp.Diff(want, maps.Collect(got.All())); diff != "" {
			t.Fatalf("the edit changed what was collected: %s", diff)
		}
	}
}

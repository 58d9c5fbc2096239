package coredns

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
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

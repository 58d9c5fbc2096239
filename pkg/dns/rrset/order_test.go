package rrset

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestInsertFirst(t *testing.T) {
	var all []Key
	for _, name := range strings.Fields("a b c d e f g h i j k") {
		all = append(all, Key{Name: name + ".example.", Type: 1})
	}
	for n := 1; n <= len(all)+1; n++ {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var first []Key
		for _, k := range all {
			first = InsertFirst(first, n, k)
		}
		sorted := slices.SortedFunc(slices.Values(all), Key.Compare)
		if want := sorted[:min(n, len(sorted))]; !slices.Equal(first, want) {
			t.Errorf("the first %d of %v: got %v, want %v", n, all, first, want)
		}
	}
}

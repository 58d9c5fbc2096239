package seq_test

import (
	"iter"
	"slices"
	"strconv"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/dns/seq"
)

// Each sequence has its elements in order, and ends when nobody asks for more.
func TestSequences(t *testing.T) {
	of := func(numbers ...int) iter.Seq[int] { return slices.Values(numbers) }
	upTo := func(n int) iter.Seq[string] {
		return func(yield func(string) bool) {
			for i := 1; i <= n && yield(strconv.Itoa(i)); i++ {
				continue
			}
		}
	}
	for name, test := range map[string]struct {
		all  iter.Seq[string]
		want []string
	}{
		"concat":                {seq.Concat(upTo(2), upTo(0), upTo(3)), []string{"1", "2", "1", "2", "3"}},
		"concat of nothing":     {seq.Concat[string](), nil},
		"map":                   {seq.Map(of(3, 1), strconv.Itoa), []string{"3", "1"}},
		"flat map":              {seq.FlatMap(of(2, 0, 1), upTo), []string{"1", "2", "1"}},
		"flat map of nothing":   {seq.FlatMap(of(), upTo), nil},
		"map of what is joined": {seq.Map(seq.Concat(of(7), of(8)), strconv.Itoa), []string{"7", "8"}},
	} {
		if got := slices.Collect(test.all); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if n := seq.Count(test.all); n != len(test.want) {
			t.Errorf("%s: there are %d, want %d", name, n, len(test.want))
		}
		for range test.all { // A sequence that went on would panic.
			break
		}
	}
}

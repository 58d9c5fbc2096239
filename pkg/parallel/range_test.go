package parallel

import (
	"sync/atomic"
	"testing"
)

func TestForRange(t *testing.T) {
	for _, n := range []int{0, 1, portion - 1, portion, portion + 1, 10*portion + 7} {
		done := make([]atomic.Int32, n)
		ForRange(n, func(i int) { done[i].Add(1) })
		for i := range done {
			if got := done[i].Load(); got != 1 {
				t.Fatalf("of %d, number %d was done %d times", n, i, got)
			}
		}
	}
}

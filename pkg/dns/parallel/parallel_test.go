package parallel

import (
	"fmt"
	"strings"
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

// TestPanics: who waits for another goroutine gets its panic, with the stack that it has there, after all have ended.
func TestPanics(t *testing.T) {
	const n = 100 * portion
	for name, of := range map[string]func(do func(i int)){
		"start":     func(do func(i int)) { Start(func() { do(0) })() },
		"for range": func(do func(i int)) { ForRange(n, do) },
	} {
		t.Run(name, func(t *testing.T) {
			var running atomic.Int32
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "number ") || name == "start" && !strings.Contains(got, "parallel_test.go") {
					t.Errorf("panicked with %s", got)
				}
				if got := running.Load(); got != 0 {
					t.Errorf("%d still run", got)
				}
			}()
			of(func(i int) {
				running.Add(1)
				defer running.Add(-1)
				panic(fmt.Sprintf("number %d", i))
			})
			t.Error("no panic")
		})
	}
}

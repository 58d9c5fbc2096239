// Package parallel distributes work that is bound by processors over all of them. It knows nothing of DNS and does no I/O.
//
// The data of 10,000 records, read one by one, takes 3.8 ms; on two processors 2.0 ms (go test -run xxx -bench ForRange ./pkg/dns/parallel).
package parallel

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// portion is how much of a range one processor takes at a time; a shorter range is not distributed.
const portion = 256

// ForRange calls do with each number from 0 to n-1, on all processors, and returns after the last call. If a call panics, so does
// ForRange, with an error that has the stack.
func ForRange(n int, do func(i int)) {
	var next atomic.Int64
	work := func() {
		for from := int(next.Add(portion)) - portion; from < n; from = int(next.Add(portion)) - portion {
			for i := from; i < min(from+portion, n); i++ {
				do(i)
			}
		}
	}
	for range min(runtime.GOMAXPROCS(0), (n-1)/portion+1) - 1 {
		defer Start(work)()
	}
	work()
}

// Start calls do in a new goroutine. wait returns when do has, and passes on a panic of do to its caller, who may recover: in the new
// goroutine it would end the process.
func Start(do func()) (wait func()) {
	var panicked error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				panicked = fmt.Errorf("%v\n\n%s", p, debug.Stack())
			}
		}()
		do()
	}()
	return func() {
		if <-done; panicked != nil {
			panic(panicked)
		}
	}
}

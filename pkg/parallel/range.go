// Package parallel shares work that needs nothing but processors out to all of them. It knows nothing of DNS and does no I/O.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// portion is how much of a range one processor takes at a time; what is shorter is not shared out.
const portion = 256

// ForRange calls do with each number from 0 to n-1, on all processors at a time, and returns after the last call.
func ForRange(n int, do func(i int)) {
	var next atomic.Int64
	work := func() {
		for from := int(next.Add(portion)) - portion; from < n; from = int(next.Add(portion)) - portion {
			for i := from; i < min(from+portion, n); i++ {
				do(i)
			}
		}
	}
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n-1)/portion+1) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
}

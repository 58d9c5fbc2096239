package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// portion is how much of a list one processor takes at a time; what is shorter is not shared out.
const portion = 256

// onAllProcessors does something for each number below n.
func onAllProcessors(n int, do func(i int)) {
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

// Package heap measures memory in tests.
package heap

import (
	"runtime"
	"time"
)

// Peak returns by how many bytes the heap grew at most while do ran.
func Peak(do func()) uint64 {
	read := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	before, peak := read(), uint64(0)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			peak = max(peak, read())
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	do()
	close(done)
	<-stopped
	return peak - min(before, peak)
}

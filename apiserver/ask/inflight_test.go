package ask

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
)

// What many want is done once for all who are content with when it began, also when who wanted it first has gone, and once
// more for all others.
func TestInflight(t *testing.T) {
	var f inflight[string]
	var times, enough atomic.Int32
	enough.Store(1)
	began, finish := make(chan struct{}, 10), make(chan struct{})
	work := func(ctx context.Context) {
		began <- struct{}{}
		<-finish
		if ctx.Err() != nil {
			t.Error("the work has ended with the first who wanted it")
		}
		times.Add(1)
	}
	await := func(ctx context.Context, n int32) { f.await(ctx, "x", func() bool { return times.Load() >= n }, work) }

	first, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		await(first, 1)
	}()
	<-began
	leave()
	<-gone
	if n := times.Load(); n != 0 {
		t.Fatalf("done %d times", n)
	}
	var wg sync.WaitGroup
	for i := range int32(50) {
		wg.Go(func() { await(t.Context(), 1+i%2) })
	}
	close(finish)
	wg.Wait()
	if n := times.Load(); n != 2 || len(f.tasks) != 0 {
		t.Errorf("done %d times, want 2; %d under way", n, len(f.tasks))
	}
}

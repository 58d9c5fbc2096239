package rig

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxRequests is how many requests the benchmarks have under way: enough to keep two cores of API server busy.
const maxRequests = 32

// Creation is when objects were created: from the first request to the answer of the API server to the last one.
type Creation struct {
	Began, Ended time.Time
	Count        int
}

// Duration returns how long it took.
func (c Creation) Duration() time.Duration { return c.Ended.Sub(c.Began) }

// String returns number, duration and rate.
func (c Creation) String() string {
	return fmt.Sprintf("%d objects created in %.1f s, %.0f/s", c.Count, c.Duration().Seconds(), float64(c.Count)/c.Duration().Seconds())
}

// CreateAll creates the objects, many at a time and roughly in order, and shows how far it is every ten seconds.
func (r *Rig) CreateAll(ctx context.Context, objects []client.Object) (Creation, error) {
	c := Creation{Began: time.Now(), Count: len(objects)}
	err := ForEachParallel(ctx, maxRequests, "created", objects, func(ctx context.Context, o client.Object) error { return r.Client.Create(ctx, o) })
	c.Ended = time.Now()
	return c, err
}

// ForEachParallel does something with all items, so many at a time.
func ForEachParallel[T any](ctx context.Context, atOnce int, done string, items []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	var count atomic.Int64
	stop := reportProgress(done, len(items), count.Load)
	defer stop()
	for _, item := range items {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			defer count.Add(1)
			return do(ctx, item)
		})
	}
	return group.Wait()
}

// reportProgress shows a count every ten seconds until it is stopped.
func reportProgress(what string, of int, count func() int64) (stop func()) {
	end := make(chan struct{})
	go func() {
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				fmt.Printf("  %d of %d %s\n", count(), of, what)
			}
		}
	}()
	return func() { close(end) }
}

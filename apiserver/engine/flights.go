package engine

import (
	"context"
	"sync"
)

// flights has what many want at the same time done once for all of them.
type flights[K comparable] struct {
	mu    sync.Mutex
	under map[K]chan struct{}
}

// until waits until it is done, or ctx ends. Work that is under way for another one may have begun too early: then it is
// done once more, again for all. It goes on when the one who began it does not wait any longer.
func (f *flights[K]) until(ctx context.Context, key K, done func() bool, work func(context.Context)) {
	for ctx.Err() == nil {
		ended := f.join(ctx, key, done, work)
		if ended == nil {
			return
		}
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
}

// join gives a channel that is closed when the work under way has ended; it begins when there is none. It gives nil when it
// is done.
func (f *flights[K]) join(ctx context.Context, key K, done func() bool, work func(context.Context)) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if done() {
		return nil
	}
	ended := f.under[key]
	if ended != nil {
		return ended
	}
	if f.under == nil {
		f.under = map[K]chan struct{}{}
	}
	ended = make(chan struct{})
	f.under[key] = ended
	go func() {
		defer close(ended)
		work(context.WithoutCancel(ctx))
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.under, key)
	}()
	return ended
}

package ask

import (
	"context"
	"sync"
)

// inflight does once what many want at the same time: fifty readers of one zone cost each server one question
// (TestSharedAnswerCountsOnce). Unlike singleflight of golang.org/x/sync it asks once more for those whose request came after the question.
type inflight[K comparable] struct {
	mu    sync.Mutex
	tasks map[K]chan struct{}
}

// await waits until isDone reports true, or ctx ends. A task that is under way for another caller may have begun too early:
// then it is done once more, again for all. A task goes on when the caller who began it gives up.
func (f *inflight[K]) await(ctx context.Context, key K, isDone func() bool, task func(context.Context)) {
	for ctx.Err() == nil {
		ended := f.joinOrStart(ctx, key, isDone, task)
		if ended == nil {
			return
		}
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
}

// joinOrStart makes a channel that is closed when the task under way has ended; it starts one when there is none. The channel is nil when
// isDone holds.
func (f *inflight[K]) joinOrStart(ctx context.Context, key K, isDone func() bool, task func(context.Context)) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if isDone() {
		return nil
	}
	if ended := f.tasks[key]; ended != nil {
		return ended
	}
	if f.tasks == nil {
		f.tasks = map[K]chan struct{}{}
	}
	ended := make(chan struct{})
	f.tasks[key] = ended
	go func() {
		defer close(ended)
		task(context.WithoutCancel(ctx))
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.tasks, key)
	}()
	return ended
}

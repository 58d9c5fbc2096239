package syncevent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/source"
)

// news is what an object has to be told. It holds no outcome itself: whoever writes it looks up the latest one.
type news struct {
	// zone whose latest outcome tells of the object.
	zone client.ObjectKey
	// released is true when the object's data has left the zone, or when the object is in no zone.
	released bool
}

// Pauses after a write that failed.
const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = time.Minute
)

// bulk is the priority of objects that nobody waits for: those that are looked at because their whole zone is.
const bulk = -1

// outbox holds the news that have not been written yet, no more than one for each object, and hands them to writers. News
// for an object replace what it held for that object; what could not be written is tried again, for ever.
type outbox struct {
	queue priorityqueue.PriorityQueue[source.ObjectKey]
	// write tells an object its news. A positive duration means that it is too early, and how much so.
	write func(context.Context, source.ObjectKey, news) (time.Duration, error)
	// depth is told how many objects wait.
	depth func(int)

	mu   sync.Mutex
	news map[source.ObjectKey]news
}

func newOutbox(write func(context.Context, source.ObjectKey, news) (time.Duration, error), depth func(int)) *outbox {
	return &outbox{
		queue: priorityqueue.New("status", func(o *priorityqueue.Opts[source.ObjectKey]) {
			o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[source.ObjectKey](firstRetry, lastRetry)
		}),
		write: write, depth: depth, news: map[source.ObjectKey]news{},
	}
}

// post adds the same news for any number of objects.
func (b *outbox) post(n news, priority int, keys ...source.ObjectKey) {
	b.mu.Lock()
	for _, key := range keys {
		b.news[key] = n
	}
	b.depth(len(b.news))
	b.mu.Unlock()
	b.queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, keys...)
}

// take hands out an object's news; it is empty when a writer has them already.
func (b *outbox) take(key source.ObjectKey) (news, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, ok := b.news[key]
	delete(b.news, key)
	b.depth(len(b.news))
	return n, ok
}

// putBack keeps news that could not be written, unless there are newer ones.
func (b *outbox) putBack(key source.ObjectKey, n news) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, newer := b.news[key]; !newer {
		b.news[key] = n
		b.depth(len(b.news))
	}
}

// run writes with so many writers until the context ends. What is not written then is found again by the first pass over
// each zone after the next start.
func (b *outbox) run(ctx context.Context, writers int) {
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for b.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	b.queue.ShutDown()
	group.Wait()
}

func (b *outbox) next(ctx context.Context) bool {
	key, priority, shutdown := b.queue.GetWithPriority()
	if shutdown {
		return false
	}
	defer b.queue.Done(key)
	n, ok := b.take(key)
	if !ok {
		return true
	}
	wait, err := b.write(ctx, key, n)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		b.putBack(key, n)
		b.complain(ctx, key, err)
		b.queue.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: &priority}, key)
	case wait > 0:
		b.putBack(key, n)
		b.queue.AddWithOpts(priorityqueue.AddOpts{After: wait, Priority: &priority}, key)
	default:
		b.queue.Forget(key)
	}
	return true
}

// complain logs what keeps on failing: the fourth try, the sixteenth, and so on. An object that changed while it was
// written is no reason to.
func (b *outbox) complain(ctx context.Context, key source.ObjectKey, err error) {
	for stage, tries := 4, b.queue.NumRequeues(key)+1; stage <= tries; stage *= 4 {
		if stage == tries {
			log.FromContext(ctx).Info("an object has not been told what became of it; trying on",
				"kind", key.Kind, "namespace", key.Namespace, "name", key.Name, "tries", tries, "error", fmt.Sprint(err))
		}
	}
}

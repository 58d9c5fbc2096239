package statuswriter

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// statusTask is why an object's status may have to change. It holds no outcome itself: whoever writes the status looks up
// the latest one.
type statusTask struct {
	// zone whose latest outcome concerns the object.
	zone client.ObjectKey
	// released is true when the object's data has left the zone, or when the object is in no zone.
	released bool
}

// Pauses after a write that failed, and how long a write may take: a few workers have all objects, and one whose request gets no answer is
// missing.
const (
	firstRetry   = 20 * time.Millisecond
	lastRetry    = time.Minute
	writeTimeout = 10 * time.Second
)

// While many objects come in they are being created, and each status takes as much of kube-apiserver as a creation. So only
// one worker goes on then. All of them do soon after the last object has come. burstRate is how many objects in a second are a burst,
// burstSize how many of them show it.
const burstRate, burstSize = 100, 50

// Priorities of objects beside 0, that of the few which a namespace has changed. manyWaiting is how many objects of a namespace may
// wait before those that follow have the next one: whoever changes one object does not wait for the thousands of another namespace.
// lowPriority is that of objects that nobody waits for: those that are looked at because their whole zone is.
const (
	manyWaiting  = 50
	bulkPriority = -1
	lowPriority  = -2
)

// statusQueue holds the tasks that have not been done yet, no more than one for each object, and hands them to workers. A
// task replaces the one that is queued for the same object; one that failed is tried again, for ever.
type statusQueue struct {
	queue priorityqueue.PriorityQueue[source.ObjectKey]
	// write does a task. A positive duration means that it is too early, and by how much.
	write func(context.Context, source.ObjectKey, statusTask) (time.Duration, error)
	// depth is called with the number of objects that wait.
	depth func(int)

	mu    sync.Mutex
	tasks map[source.ObjectKey]statusTask
	// waiting is how many of the tasks are of each namespace.
	waiting map[string]int
	// room is how many objects may still come in before half of it is used up, which is a burst.
	room *rate.Limiter
}

func newStatusQueue(write func(context.Context, source.ObjectKey, statusTask) (time.Duration, error), depth func(int)) *statusQueue {
	return &statusQueue{
		queue: priorityqueue.New("status", func(o *priorityqueue.Opts[source.ObjectKey]) {
			o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[source.ObjectKey](firstRetry, lastRetry)
		}),
		write: write, depth: depth, tasks: map[source.ObjectKey]statusTask{}, waiting: map[string]int{},
		room: rate.NewLimiter(burstRate, 2*burstSize),
	}
}

// add queues the same task for any number of objects.
func (b *statusQueue) add(n statusTask, priority int, keys ...source.ObjectKey) {
	b.mu.Lock()
	var few, many []source.ObjectKey
	for _, key := range keys {
		if b.setTask(key, n); b.isCrowded(key.Namespace) {
			many = append(many, key)
		} else {
			few = append(few, key)
		}
	}
	if !n.isRelease() {
		now := time.Now()
		b.room.AllowN(now, min(len(keys), int(b.room.TokensAt(now))))
	}
	b.mu.Unlock()
	b.queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, few...)
	b.queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(min(priority, bulkPriority))}, many...)
}

// addAfter queues a task after a moment, unless the object has one by then, which writes its status as well.
func (b *statusQueue) addAfter(moment time.Duration, n statusTask, key source.ObjectKey) {
	b.mu.Lock()
	if _, known := b.tasks[key]; !known {
		b.setTask(key, n)
	}
	priority := 0
	if b.isCrowded(key.Namespace) {
		priority = bulkPriority
	}
	b.mu.Unlock()
	b.queue.AddWithOpts(priorityqueue.AddOpts{After: moment, Priority: &priority}, key)
}

// isCrowded reports whether so many objects of a namespace wait that the next ones have bulkPriority. b.mu is held.
func (b *statusQueue) isCrowded(namespace string) bool { return b.waiting[namespace] > manyWaiting }

// setTask replaces an object's task. b.mu is held.
func (b *statusQueue) setTask(key source.ObjectKey, n statusTask) {
	if _, known := b.tasks[key]; !known {
		b.waiting[key.Namespace]++
	}
	b.tasks[key] = n
	b.depth(len(b.tasks))
}

// isRelease reports whether the task takes our marks off an object whose data has left a zone: whoever deletes it waits for that.
func (n statusTask) isRelease() bool { return n.released && n.zone.Name != "" }

// takeTask takes an object's task out of the queue; not ok when a worker has it already.
func (b *statusQueue) takeTask(key source.ObjectKey) (statusTask, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, ok := b.tasks[key]
	if !ok {
		return n, false
	}
	delete(b.tasks, key)
	b.depth(len(b.tasks))
	if b.waiting[key.Namespace]--; b.waiting[key.Namespace] == 0 {
		delete(b.waiting, key.Namespace)
	}
	return n, true
}

// putBack queues a task that failed, unless there is a newer one.
func (b *statusQueue) putBack(key source.ObjectKey, n statusTask) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, newer := b.tasks[key]; !newer {
		b.setTask(key, n)
	}
}

// run does tasks with a number of workers until the context ends. What is not done then is found again by the first pass over
// each zone after the next start.
func (b *statusQueue) run(ctx context.Context, writers int) {
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			for i == 0 || b.awaitCalm(ctx) {
				if !b.processNext(ctx) {
					return
				}
			}
		})
	}
	<-ctx.Done()
	b.queue.ShutDown()
	group.Wait()
}

// awaitCalm waits until no burst of objects comes in. It reports false when the context has ended.
func (b *statusQueue) awaitCalm(ctx context.Context) bool {
	for {
		lacking := burstSize - b.room.Tokens()
		if lacking <= 0 {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Duration(lacking / burstRate * float64(time.Second))):
		}
	}
}

func (b *statusQueue) processNext(ctx context.Context) bool {
	key, priority, shutdown := b.queue.GetWithPriority()
	if shutdown {
		return false
	}
	defer b.queue.Done(key)
	n, ok := b.takeTask(key)
	if !ok {
		return true
	}
	writing, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	wait, err := b.write(writing, key, n)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		b.putBack(key, n)
		b.logFailure(ctx, key, err)
		b.queue.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: &priority}, key)
	case wait > 0:
		b.putBack(key, n)
		b.queue.AddWithOpts(priorityqueue.AddOpts{After: wait, Priority: &priority}, key)
	default:
		b.queue.Forget(key)
	}
	return true
}

// logFailure logs what keeps on failing: the fourth try, the sixteenth, and so on. An object that changed while it was
// written is no reason to.
func (b *statusQueue) logFailure(ctx context.Context, key source.ObjectKey, err error) {
	for stage, tries := 4, b.queue.NumRequeues(key)+1; stage <= tries; stage *= 4 {
		if stage == tries {
			log.FromContext(ctx).Info("status update failed; retrying",
				"kind", key.Kind, "namespace", key.Namespace, "name", key.Name, "tries", tries, "error", fmt.Sprint(err))
		}
	}
}

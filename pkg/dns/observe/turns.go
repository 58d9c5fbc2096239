package observe

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/time/rate"
)

// turns admits a number of questions in a second, those of each namespace in turn: a namespace that asks much does not delay the others.
type turns struct {
	limiter *rate.Limiter // nil for no limit

	mu sync.Mutex
	// waiting are those that wait, by namespace, order these namespaces, the next one first.
	waiting   map[string][]chan struct{}
	order     []string
	admitting bool
}

// newTurns admits at most perSecond questions in any second; 0 for no limit.
func newTurns(perSecond int) *turns {
	t := &turns{waiting: map[string][]chan struct{}{}}
	if perSecond > 0 {
		burst := max(1, perSecond/50)
		t.limiter = rate.NewLimiter(rate.Limit(max(1, perSecond-2*burst)), burst)
	}
	return t
}

// wait waits for the turn of a question that a namespace asks.
func (t *turns) wait(ctx context.Context, namespace string) error {
	if t.limiter == nil {
		return nil
	}
	turn := make(chan struct{})
	t.mu.Lock()
	if len(t.waiting[namespace]) == 0 {
		t.order = append(t.order, namespace)
	}
	t.waiting[namespace] = append(t.waiting[namespace], turn)
	if !t.admitting {
		t.admitting = true
		go t.admit() //nolint:contextcheck,gosec // it admits the questions of all callers
	}
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		t.giveUp(namespace, turn)
		return context.Cause(ctx)
	}
}

func (t *turns) countWaiting() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, queue := range t.waiting {
		n += len(queue)
	}
	return n
}

// giveUp takes a question out of the queue of its namespace.
func (t *turns) giveUp(namespace string, turn chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting[namespace], turn); i >= 0 {
		t.setWaiting(namespace, slices.Delete(t.waiting[namespace], i, i+1))
	}
}

// setWaiting replaces the queue of a namespace. t.mu is held.
func (t *turns) setWaiting(namespace string, queue []chan struct{}) {
	if t.waiting[namespace] = queue; len(queue) == 0 {
		delete(t.waiting, namespace)
		t.order = slices.DeleteFunc(t.order, func(n string) bool { return n == namespace })
	}
}

// admit admits whoever waits, until nobody does.
func (t *turns) admit() {
	for t.admitNext() {
		_ = t.limiter.Wait(context.Background()) // It has no deadline, and one is no more than the burst.
	}
}

func (t *turns) admitNext() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.order) == 0 {
		t.admitting = false
		return false
	}
	next := t.order[0]
	t.order = append(t.order[1:], next)
	queue := t.waiting[next]
	close(queue[0])
	t.setWaiting(next, queue[1:])
	return true
}

package observe

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// turns admits so many questions in a second, those of each key in turn: who asks for much does not keep others waiting.
type turns struct {
	limiter *rate.Limiter // nil for no limit

	mu sync.Mutex
	// waiting are those that wait, by key, order the keys of these, the next one first.
	waiting   map[wire.Key][]chan struct{}
	order     []wire.Key
	admitting bool
}

// newTurns returns turns for at most so many questions in any second; 0 for no limit.
func newTurns(perSecond int) *turns {
	t := &turns{waiting: map[wire.Key][]chan struct{}{}}
	if perSecond > 0 {
		burst := max(1, perSecond/50)
		t.limiter = rate.NewLimiter(rate.Limit(max(1, perSecond-2*burst)), burst)
	}
	return t
}

// wait waits for the turn of a question that is signed with a key.
func (t *turns) wait(ctx context.Context, key wire.Key) error {
	if t.limiter == nil {
		return nil
	}
	turn := make(chan struct{})
	t.mu.Lock()
	if len(t.waiting[key]) == 0 {
		t.order = append(t.order, key)
	}
	t.waiting[key] = append(t.waiting[key], turn)
	if !t.admitting {
		t.admitting = true
		go t.admit() //nolint:contextcheck,gosec // it admits the questions of all callers
	}
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		t.giveUp(key, turn)
		return context.Cause(ctx)
	}
}

// countWaiting returns how many questions wait for their turn.
func (t *turns) countWaiting() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, queue := range t.waiting {
		n += len(queue)
	}
	return n
}

// giveUp takes a question out of the queue of its key.
func (t *turns) giveUp(key wire.Key, turn chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting[key], turn); i >= 0 {
		t.setWaiting(key, slices.Delete(t.waiting[key], i, i+1))
	}
}

// setWaiting replaces the queue of a key. t.mu is held.
func (t *turns) setWaiting(key wire.Key, queue []chan struct{}) {
	if t.waiting[key] = queue; len(queue) == 0 {
		delete(t.waiting, key)
		t.order = slices.DeleteFunc(t.order, func(k wire.Key) bool { return k == key })
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
	key := t.order[0]
	t.order = append(t.order[1:], key)
	queue := t.waiting[key]
	close(queue[0])
	t.setWaiting(key, queue[1:])
	return true
}

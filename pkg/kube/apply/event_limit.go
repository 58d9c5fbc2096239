package apply

import (
	"sync"

	"golang.org/x/time/rate"
)

// EventLimit bounds how many Events are made. One namespace makes half of them at most: what happens to the objects of one leaves room for
// those of others. It is safe for concurrent use.
type EventLimit struct {
	perSecond rate.Limit
	burst     int
	all       *rate.Limiter

	mu         sync.Mutex
	namespaces map[string]*rate.Limiter
}

// NewEventLimit permits perSecond Events in a second, after a burst.
func NewEventLimit(perSecond float64, burst int) *EventLimit {
	return &EventLimit{
		perSecond: rate.Limit(perSecond), burst: burst, all: rate.NewLimiter(rate.Limit(perSecond), burst), namespaces: map[string]*rate.Limiter{},
	}
}

// Take reports whether an Event in a namespace may be made now.
func (l *EventLimit) Take(namespace string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.namespaces[namespace]
	if own == nil {
		l.dropIdle()
		own = rate.NewLimiter(l.perSecond/2, max(l.burst/2, 1))
		l.namespaces[namespace] = own
	}
	return own.Allow() && l.all.Allow()
}

// maxIdle is how many namespaces are remembered before those are looked for that make no Events. One that has all of its burst is like a
// new one.
const maxIdle = 1000

// dropIdle forgets namespaces that make no Events. l.mu is held.
func (l *EventLimit) dropIdle() {
	if len(l.namespaces) < maxIdle {
		return
	}
	for namespace, own := range l.namespaces {
		if own.Tokens() >= float64(own.Burst()) {
			delete(l.namespaces, namespace)
		}
	}
}

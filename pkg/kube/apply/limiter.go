package apply

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// StatusInterval is the least time between two writes of one object's status. What changes in between is in the next.
	StatusInterval = time.Second
	// ListInterval is that for a change of nothing but a long list: while a thousand zones arrive, writing their list over
	// and over would cost kube-apiserver, and everybody who watches the object, more than the zones do.
	ListInterval = 10 * time.Second
)

// StatusLimiter bounds how often the status of an object is written. The zero value is ready for use.
type StatusLimiter struct {
	mu   sync.Mutex
	last map[types.UID]time.Time
}

// Delay is how long a write has to wait for the end of an interval after the last one. With 0 the write counts as done now.
func (l *StatusLimiter) Delay(object types.UID, now time.Time, interval time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := interval - now.Sub(l.last[object]); left > 0 && left <= interval {
		return left
	}
	maps.DeleteFunc(l.last, func(_ types.UID, at time.Time) bool { return now.Sub(at) >= ListInterval })
	if l.last == nil {
		l.last = map[types.UID]time.Time{}
	}
	l.last[object] = now
	return 0
}

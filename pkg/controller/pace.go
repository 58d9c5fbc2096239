package controller

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// statusPause is the least time between two writes of one object's status. What changes in between is told by the next.
const statusPause = time.Second

// pace bounds how often the status of an object is written, however often its parts come and go.
type pace struct {
	mu   sync.Mutex
	last map[types.UID]time.Time
}

// wait is how long a write has to wait; with 0 the write counts as done now.
func (p *pace) wait(object types.UID, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := statusPause - now.Sub(p.last[object]); left > 0 && left <= statusPause {
		return left
	}
	maps.DeleteFunc(p.last, func(_ types.UID, at time.Time) bool { return now.Sub(at) >= statusPause })
	if p.last == nil {
		p.last = map[types.UID]time.Time{}
	}
	p.last[object] = now
	return 0
}

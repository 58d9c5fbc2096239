package controller

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// statusPause is the least time between two writes of one object's status. What changes in between is told by the next.
// listPause is for a change of nothing but a long list: while a thousand zones arrive, writing their list over and over
// would cost kube-apiserver, and everybody who watches the object, more than the zones do.
const (
	statusPause = time.Second
	listPause   = 10 * time.Second
)

// pace bounds how often the status of an object is written, however often its parts come and go.
type pace struct {
	mu   sync.Mutex
	last map[types.UID]time.Time
}

// wait is how long a write has to wait for its turn, which is a pause after the last one; with 0 the write counts as done
// now.
func (p *pace) wait(object types.UID, now time.Time, pause time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := pause - now.Sub(p.last[object]); left > 0 && left <= pause {
		return left
	}
	maps.DeleteFunc(p.last, func(_ types.UID, at time.Time) bool { return now.Sub(at) >= listPause })
	if p.last == nil {
		p.last = map[types.UID]time.Time{}
	}
	p.last[object] = now
	return 0
}

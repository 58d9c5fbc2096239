package evaluate

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
)

// lagTimeout is how long it is remembered that a server was behind when nobody asks.
const lagTimeout = time.Hour

// lagHistory remembers since when each server has been behind.
type lagHistory struct {
	mu    sync.Mutex
	since *cache.Expiring // by Place
}

// behindSince takes note of whether a server was behind at some time, and returns since when it has been; zero when it is
// not.
func (l *lagHistory) behindSince(place Place, behind bool, at time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !behind {
		l.since.Delete(place)
		return time.Time{}
	}
	if since, known := l.since.Get(place); known && since.(time.Time).Before(at) {
		at = since.(time.Time)
	}
	l.since.Set(place, at, lagTimeout)
	return at
}

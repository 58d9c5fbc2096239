package evaluate

import (
	"maps"
	"sync"
	"time"
)

// lagTimeout is how long it is remembered that a server was behind when nobody asks.
const lagTimeout = time.Hour

// lagHistory remembers since when each server has been behind.
type lagHistory struct {
	mu     sync.Mutex
	places map[Place]lagPeriod
	swept  time.Time
}

type lagPeriod struct{ first, last time.Time }

// behindSince takes note of whether a server was behind at some time, and returns since when it has been; zero when it is
// not.
func (l *lagHistory) behindSince(place Place, behind bool, at time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !behind {
		delete(l.places, place)
		return time.Time{}
	}
	l.sweep(at)
	seen, known := l.places[place]
	if !known || at.Before(seen.first) {
		seen.first = at
	}
	seen.last = at
	if l.places == nil {
		l.places = map[Place]lagPeriod{}
	}
	l.places[place] = seen
	return seen.first
}

// sweep forgets what nobody has asked about for long. l.mu is held.
func (l *lagHistory) sweep(now time.Time) {
	if now.Sub(l.swept) < lagTimeout {
		return
	}
	l.swept = now
	maps.DeleteFunc(l.places, func(_ Place, seen lagPeriod) bool { return now.Sub(seen.last) >= lagTimeout })
}

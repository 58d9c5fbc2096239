package engine

import (
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// rememberedFor is how long it is remembered that a server was behind when nobody asks.
const rememberedFor = time.Hour

// late remembers since when each server has been seen behind.
type late struct {
	mu    sync.Mutex
	since map[zoneOn]lateness
	swept time.Time
}

type lateness struct{ first, last time.Time }

// note takes down what was seen of a server at some time, and gives since when it has been behind; zero when it is not.
func (l *late) note(server netip.AddrPort, zone string, behind bool, at time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := zoneOn{server, zone}
	if !behind {
		delete(l.since, key)
		return time.Time{}
	}
	l.sweep(at)
	seen, known := l.since[key]
	if !known || at.Before(seen.first) {
		seen.first = at
	}
	seen.last = at
	if l.since == nil {
		l.since = map[zoneOn]lateness{}
	}
	l.since[key] = seen
	return seen.first
}

// sweep forgets what nobody has asked about for long. l.mu is held.
func (l *late) sweep(now time.Time) {
	if now.Sub(l.swept) < rememberedFor {
		return
	}
	l.swept = now
	maps.DeleteFunc(l.since, func(_ zoneOn, seen lateness) bool { return now.Sub(seen.last) >= rememberedFor })
}

// judged sets a view against the answers of its servers.
func (e *Engine) judged(v *view, answers []observe.Observation) *syncstatus.Judgement {
	zone := v.declared.ZoneName()
	return syncstatus.Judge(v.declared, v.servers, answers, time.Now(), syncstatus.Past{
		Late: func(server netip.AddrPort, behind bool, at time.Time) time.Time {
			return e.late.note(server, zone, behind, at)
		},
		Caches: e.former.of(zone, v.servers),
	})
}

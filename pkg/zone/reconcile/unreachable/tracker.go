// Package unreachable asks servers about zones and knows those that do not answer. A pass does not wait for one of them
// again: thousands of zones would wait one after the other. One question now and then finds out when the server is back,
// and all zones that missed it are enqueued then.
package unreachable

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Pace of the questions to an unreachable server, and for how long after a pass last needed it.
const (
	firstProbe  = 100 * time.Millisecond
	lastProbe   = time.Second
	probePeriod = 10 * time.Minute
)

// Tracker asks servers, but does not wait for those that are known to be unreachable. It is safe for concurrent use.
type Tracker struct {
	observer *observe.Observer
	enqueue  func(membership.ZoneKey)

	mu      sync.Mutex
	servers map[netip.AddrPort]*server
}

// server is one that does not answer.
type server struct {
	// last is the result of the last question to it.
	last observe.Observation
	// waiting are the zones that a pass needed it for, the last time at neededAt.
	waiting  map[membership.ZoneKey]struct{}
	neededAt time.Time
}

// Zone names a zone by its object and by its DNS name, with the dot at the end.
type Zone struct {
	Key  membership.ZoneKey
	Name string
}

// NewTracker returns a Tracker that asks through observer, and enqueues the zones that missed a server when it is back.
func NewTracker(observer *observe.Observer, enqueue func(membership.ZoneKey)) *Tracker {
	return &Tracker{observer: observer, enqueue: enqueue, servers: map[netip.AddrPort]*server{}}
}

// Serial asks a server for a zone's SOA, unless it is known to be unreachable.
func (t *Tracker) Serial(ctx context.Context, at netip.AddrPort, zone Zone, key *wire.Key) observe.Observation {
	return t.ask(ctx, at, zone, func() observe.Observation { return t.observer.Serial(ctx, at, zone.Name, key) })
}

// Observe asks a server for a zone's content, unless it is known to be unreachable.
func (t *Tracker) Observe(ctx context.Context, at netip.AddrPort, zone Zone, key *wire.Key) observe.Observation {
	return t.ask(ctx, at, zone, func() observe.Observation {
		return t.observer.Observe(ctx, at, zone.Name, key, time.Now())
	})
}

// ObserveNames asks a server that is read by query for a zone's SOA and some RRsets, unless it is known to be unreachable.
func (t *Tracker) ObserveNames(ctx context.Context, at netip.AddrPort, zone Zone, key *wire.Key, questions ...observe.Question) observe.Observation {
	return t.ask(ctx, at, zone, func() observe.Observation {
		return t.observer.ObserveNames(ctx, at, zone.Name, key, time.Now(), questions...)
	})
}

// ObserveAnew transfers a zone's content in whole and keeps nothing of it.
func (t *Tracker) ObserveAnew(ctx context.Context, at netip.AddrPort, zone Zone, key *wire.Key) observe.Observation {
	t.observer.Invalidate(at, zone.Name)
	defer t.observer.Forget(at, zone.Name)
	return t.Observe(ctx, at, zone, key)
}

// ForgetZone drops what is known of a zone on a server.
func (t *Tracker) ForgetZone(at netip.AddrPort, name string) { t.observer.Forget(at, name) }

func (t *Tracker) ask(ctx context.Context, at netip.AddrPort, zone Zone, question func() observe.Observation) observe.Observation {
	if last, ok := t.lastOf(at, zone); ok {
		return last
	}
	observation := question()
	t.record(ctx, zone, observation)
	return observation
}

// lastOf returns, for an unreachable server, the observation that replaces another question to it.
func (t *Tracker) lastOf(at netip.AddrPort, zone Zone) (observe.Observation, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.servers[at]
	if s == nil {
		return observe.Observation{}, false
	}
	s.waiting[zone.Key], s.neededAt = struct{}{}, time.Now()
	last := s.last
	var e *wire.Error
	if errors.As(last.Err, &e) {
		own := *e // Users must not read each other's zone names.
		own.Zone = zone.Name
		last.Err = &own
	}
	return last, true
}

// IsUnreachable reports whether a server is known to be unreachable.
func (t *Tracker) IsUnreachable(at netip.AddrPort) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.servers[at] != nil
}

// record takes over the result of a question.
func (t *Tracker) record(ctx context.Context, zone Zone, result observe.Observation) {
	if result.Rcode != observe.NoReply || ctx.Err() != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.servers[result.Server]; s != nil {
		s.waiting[zone.Key] = struct{}{}
		return
	}
	s := &server{last: result, waiting: map[membership.ZoneKey]struct{}{zone.Key: {}}, neededAt: time.Now()}
	t.servers[result.Server] = s
	go t.probe(context.WithoutCancel(ctx), s, zone.Name)
}

// probe asks until the server answers, or nobody needs it any more.
func (t *Tracker) probe(ctx context.Context, s *server, zone string) {
	for pause := firstProbe; ; pause = min(2*pause, lastProbe) {
		time.Sleep(pause)
		result := t.observer.Serial(ctx, s.last.Server, zone, nil) // Any answer shows that the server is back.
		t.mu.Lock()
		over := t.servers[s.last.Server] != s
		if result.Rcode != observe.NoReply || time.Since(s.neededAt) > probePeriod {
			over = true
			t.resetLocked(s)
		}
		t.mu.Unlock()
		if over {
			return
		}
	}
}

// Reset has a server asked again: it may have started anew.
func (t *Tracker) Reset(at netip.AddrPort) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.servers[at]; s != nil {
		t.resetLocked(s)
	}
}

// resetLocked takes a server as reachable. t.mu is held.
func (t *Tracker) resetLocked(s *server) {
	if t.servers[s.last.Server] != s {
		return
	}
	delete(t.servers, s.last.Server)
	for key := range s.waiting {
		t.enqueue(key)
	}
}

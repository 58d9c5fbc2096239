// Package unreachable asks servers about zones and knows those that do not answer. A pass does not wait for one of them
// again: thousands of zones would wait one after the other. A worker that asks a silent server about 20 zones takes 2.2 s, and 40 s
// without this package (go test -run xxx -bench Silent -benchtime 1x ./pkg/zone/unreachable).
//
// One question now and then finds out when the server is back, and all zones that missed it are enqueued then. Each observe.Peer counts
// by itself: what a DNSProvider is answered, or fails at, says nothing about the server that somebody else has at the same address.
package unreachable

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
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
	servers map[observe.Peer]*server
}

// server is one that does not answer.
type server struct {
	peer observe.Peer
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

// declared returns the zone as an Observer knows it.
func (z Zone) declared() observe.Zone { return observe.Zone{Namespace: z.Key.Namespace, Name: z.Name} }

// NewTracker returns a Tracker that asks through observer, and enqueues the zones that missed a server when it is back.
func NewTracker(observer *observe.Observer, enqueue func(membership.ZoneKey)) *Tracker {
	return &Tracker{observer: observer, enqueue: enqueue, servers: map[observe.Peer]*server{}}
}

// Serial asks a server for a zone's SOA, unless it is known to be unreachable.
func (t *Tracker) Serial(ctx context.Context, at observe.Peer, zone Zone, key *wire.Key) observe.Observation {
	return t.ask(ctx, at, zone, func() observe.Observation { return t.observer.Serial(ctx, at, zone.Name, key) })
}

// Observe asks a server for a zone's content, unless it is known to be unreachable.
func (t *Tracker) Observe(ctx context.Context, at observe.Peer, zone Zone, key *wire.Key) observe.Observation {
	return t.ask(ctx, at, zone, func() observe.Observation {
		return t.observer.Observe(ctx, at, zone.declared(), key, time.Now())
	})
}

// ObserveNames asks a server that is read by query for a zone's SOA and some RRsets, unless it is known to be unreachable.
func (t *Tracker) ObserveNames(ctx context.Context, at observe.Peer, zone Zone, key *wire.Key, questions ...observe.Question) observe.Observation {
	return t.ask(ctx, at, zone, func() observe.Observation {
		return t.observer.ObserveNames(ctx, at, zone.declared(), key, time.Now(), questions...)
	})
}

// Ask asks a server for one RRset of a zone, unless it is known to be unreachable.
func (t *Tracker) Ask(ctx context.Context, at observe.Peer, zone Zone, key *wire.Key, about rrset.Key) (rrset.RRset, error) {
	if last, ok := t.lastOf(at, zone); ok {
		return rrset.RRset{}, last.Err
	}
	return t.observer.AskZone(ctx, at, zone.declared(), key, about)
}

// ObserveAnew transfers a zone's content in whole and keeps nothing of it.
func (t *Tracker) ObserveAnew(ctx context.Context, at observe.Peer, zone Zone, key *wire.Key) observe.Observation {
	t.observer.Invalidate(at, zone.declared())
	defer t.observer.Forget(at, zone.declared())
	return t.Observe(ctx, at, zone, key)
}

// ForgetZone drops what is known of a zone on a server.
func (t *Tracker) ForgetZone(at observe.Peer, zone Zone) { t.observer.Forget(at, zone.declared()) }

func (t *Tracker) ask(ctx context.Context, at observe.Peer, zone Zone, question func() observe.Observation) observe.Observation {
	if last, ok := t.lastOf(at, zone); ok {
		return last
	}
	observation := question()
	t.record(ctx, at, zone, observation)
	return observation
}

// lastOf returns, for an unreachable server, the observation that replaces another question to it.
func (t *Tracker) lastOf(at observe.Peer, zone Zone) (observe.Observation, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.servers[at]
	if s == nil {
		return observe.Observation{}, false
	}
	s.waiting[zone.Key], s.neededAt = struct{}{}, time.Now()
	last := s.last
	if e, ok := errors.AsType[*wire.Error](last.Err); ok {
		own := *e // Users must not read each other's zone names.
		own.Zone = zone.Name
		last.Err = &own
	}
	return last, true
}

// IsUnreachable reports whether a server is known to be unreachable.
func (t *Tracker) IsUnreachable(at observe.Peer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.servers[at] != nil
}

// record takes over the result of a question. One that we could not send says nothing about the server.
func (t *Tracker) record(ctx context.Context, at observe.Peer, zone Zone, result observe.Observation) {
	if result.Rcode != observe.NoReply || wire.IsLocal(result.Err) || ctx.Err() != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.servers[at]; s != nil {
		s.waiting[zone.Key] = struct{}{}
		return
	}
	s := &server{peer: at, last: result, waiting: map[membership.ZoneKey]struct{}{zone.Key: {}}, neededAt: time.Now()}
	t.servers[at] = s
	go t.probe(context.WithoutCancel(ctx), s, zone.Name)
}

// probe asks until the server answers, or nobody needs it any more.
func (t *Tracker) probe(ctx context.Context, s *server, zone string) {
	for pause := firstProbe; ; pause = min(2*pause, lastProbe) {
		time.Sleep(pause)
		result := t.observer.Serial(ctx, s.peer, zone, nil) // Any answer shows that the server is back.
		t.mu.Lock()
		over := t.servers[s.peer] != s
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
func (t *Tracker) Reset(at observe.Peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.servers[at]; s != nil {
		t.resetLocked(s)
	}
}

// resetLocked takes a server as reachable. t.mu is held.
func (t *Tracker) resetLocked(s *server) {
	if t.servers[s.peer] != s {
		return
	}
	delete(t.servers, s.peer)
	for key := range s.waiting {
		t.enqueue(key)
	}
}

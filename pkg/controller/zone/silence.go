package zone

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// Pace at which a silent server is asked whether it is back, and for how long after a pass last wanted it.
const (
	firstProbe   = 100 * time.Millisecond
	lastProbe    = time.Second
	probeForZone = 10 * time.Minute
)

// silence knows the servers that do not answer. A pass does not wait for one of them again: thousands of zones would wait
// one after the other. One question now and then finds out when the server is back, and all zones that missed it are
// looked at then.
type silence struct {
	observer *observe.Observer
	wake     func(zoneKey)

	mu      sync.Mutex
	servers map[netip.AddrPort]*silent
}

// silent is a server that does not answer.
type silent struct {
	// seen is what the last question to it led to.
	seen observe.Observation
	// missed are the zones that a pass wanted it for, the last time at wanted.
	missed map[zoneKey]struct{}
	wanted time.Time
}

// known gives, for a server that is silent, the observation that stands for another question to it.
func (s *silence) known(server netip.AddrPort, key zoneKey, zone string) (observe.Observation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.servers[server]
	if q == nil {
		return observe.Observation{}, false
	}
	q.missed[key], q.wanted = struct{}{}, time.Now()
	seen := q.seen
	var e *wire.Error
	if errors.As(seen.Err, &e) {
		own := *e // Users must not read each other's zone names.
		own.Zone = zone
		seen.Err = &own
	}
	return seen, true
}

// is tells whether a server is silent.
func (s *silence) is(server netip.AddrPort) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.servers[server] != nil
}

// note takes over what a question led to.
func (s *silence) note(ctx context.Context, key zoneKey, zone string, seen observe.Observation) {
	if seen.Rcode != observe.NoReply || ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.servers[seen.Server]; q != nil {
		q.missed[key] = struct{}{}
		return
	}
	if s.servers == nil {
		s.servers = map[netip.AddrPort]*silent{}
	}
	q := &silent{seen: seen, missed: map[zoneKey]struct{}{key: {}}, wanted: time.Now()}
	s.servers[seen.Server] = q
	go s.probe(context.WithoutCancel(ctx), q, zone)
}

// probe asks until the server answers, or nobody wants it any more.
func (s *silence) probe(ctx context.Context, q *silent, zone string) {
	for pause := firstProbe; ; pause = min(2*pause, lastProbe) {
		time.Sleep(pause)
		seen := s.observer.Serial(ctx, q.seen.Server, zone)
		s.mu.Lock()
		over := s.servers[q.seen.Server] != q
		if seen.Rcode != observe.NoReply || time.Since(q.wanted) > probeForZone {
			over = true
			s.endLocked(q)
		}
		s.mu.Unlock()
		if over {
			return
		}
	}
}

// forget has a server asked again: it may have started anew.
func (s *silence) forget(server netip.AddrPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.servers[server]; q != nil {
		s.endLocked(q)
	}
}

// endLocked takes a server as one that answers. s.mu is held.
func (s *silence) endLocked(q *silent) {
	if s.servers[q.seen.Server] != q {
		return
	}
	delete(s.servers, q.seen.Server)
	for key := range q.missed {
		s.wake(key)
	}
}

// serial asks a server for the zone's SOA, observe for its content too. Neither waits for a server that is known to be
// silent.
func (p *pass) serial(ctx context.Context, server observe.Server) observe.Observation {
	return p.ask(ctx, server, func(name string) observe.Observation {
		return p.deps.Observer.Serial(ctx, server.Addr, name)
	})
}

func (p *pass) observe(ctx context.Context, server observe.Server, key *wire.Key) observe.Observation {
	return p.ask(ctx, server, func(name string) observe.Observation {
		return p.deps.Observer.Observe(ctx, server.Addr, name, key, time.Now())
	})
}

func (p *pass) ask(ctx context.Context, server observe.Server, question func(zone string) observe.Observation) observe.Observation {
	key, name := membership.KeyOfZone(p.zone), p.state.desired.Name
	if seen, ok := p.silence.known(server.Addr, key, name); ok {
		return seen
	}
	seen := question(name)
	p.silence.note(ctx, key, name, seen)
	return seen
}

package observe

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// zone is what is kept about one zone on one server. Observer.mu guards it.
type zone struct {
	server *server
	// last is the last observation, nil at first and after Invalidate.
	last *Observation
	// mirror is the newest known content, also while the server is out of reach.
	mirror *Mirror
	// was is the content that the server was last found to have, whether or not it may be built on.
	was *Mirror
	// flight is closed when the observation under way has ended; nil when there is none.
	flight chan struct{}
	// generation counts invalidations: an observation that began before one is not kept.
	generation int
	idle       *time.Timer
}

// zone finds or makes the entry and postpones its being dropped. Observer.mu is held.
func (o *Observer) zone(t target) *zone {
	z := o.zones[t]
	if z == nil {
		z = &zone{server: o.holdLocked(t.server)}
		z.idle = time.AfterFunc(o.options.IdleAfter, func() { o.dropIdle(t, z) })
		o.zones[t] = z
	}
	z.idle.Reset(o.options.IdleAfter)
	return z
}

func (o *Observer) dropIdle(t target, z *zone) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.zones[t] != z:
	case z.flight != nil:
		z.idle.Reset(o.options.IdleAfter)
	default:
		o.drop(t)
	}
}

// drop removes an entry. Observer.mu is held.
func (o *Observer) drop(t target) {
	if z := o.zones[t]; z != nil {
		z.idle.Stop()
		delete(o.zones, t)
		o.releaseLocked(t.server)
	}
}

// server is what all questions to one server share.
type server struct {
	users                int // guarded by Observer.mu
	questions, transfers gate
	meter                Meter

	mu sync.Mutex
	// silent is the last SOA question that was not answered.
	silent Observation
}

func (o *Observer) holdServer(addr netip.AddrPort) *server {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.holdLocked(addr)
}

func (o *Observer) holdLocked(addr netip.AddrPort) *server {
	s := o.servers[addr]
	if s == nil {
		s = &server{meter: o.options.Meter, questions: make(gate, o.options.Questions), transfers: make(gate, o.options.Transfers)}
		o.servers[addr] = s
	}
	s.users++
	return s
}

func (o *Observer) releaseServer(addr netip.AddrPort) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.releaseLocked(addr)
}

func (o *Observer) releaseLocked(addr netip.AddrPort) {
	if s := o.servers[addr]; s != nil {
		if s.users--; s.users == 0 {
			delete(o.servers, addr)
		}
	}
}

// ask asks for a zone's SOA. While a question waits for its turn another one to the same server, sent since wanted, may
// go unanswered: that counts for this one as well, so that a thousand zones on a dead server take no longer than one.
func (s *server) ask(ctx context.Context, addr netip.AddrPort, name string, wanted time.Time, timeout time.Duration) Observation {
	release, err := s.questions.enter(ctx)
	if err != nil {
		return GaveUp(ctx, addr, name)
	}
	defer release()
	if silent, ok := s.silentSince(wanted); ok {
		silent.Err = about(silent.Err, addr, name)
		return silent
	}
	at := time.Now()
	reply, err := wire.Query(ctx, addr, name, dns.TypeSOA, wire.WithTimeout(timeout), wire.WithExpire())
	obs := observed(addr, at, name, reply, err)
	s.meter.Asked(addr, obs.Rcode != NoReply, time.Since(at))
	if obs.Rcode == NoReply && ctx.Err() == nil {
		s.mu.Lock()
		s.silent = obs
		s.mu.Unlock()
	}
	return obs
}

func (s *server) silentSince(t time.Time) (Observation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent, s.silent.Err != nil && !s.silent.At.Before(t)
}

// about tells the cause of another zone's failure as this one's: users must not read each other's zone names.
func about(err error, addr netip.AddrPort, name string) error {
	var e *wire.Error
	if !errors.As(err, &e) {
		return err
	}
	own := *e
	own.Server, own.Zone = addr.String(), name
	return &own
}

// gate lets as many in as it has room for.
type gate chan struct{}

func (g gate) enter(ctx context.Context) (leave func(), err error) {
	select {
	case g <- struct{}{}:
		return func() { <-g }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

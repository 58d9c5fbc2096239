package observe

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// zoneEntry is the cached state of one zone on one server. Observer.mu guards it.
type zoneEntry struct {
	of     entryKey
	server *serverEntry
	// last is the last observation; nil at first and after Invalidate.
	last *Observation
	// mirror is the newest known content, also while the server is unreachable.
	mirror *Mirror
	// lastSeen is the content that the server was last seen to have; unlike mirror it survives Invalidate.
	lastSeen *Mirror
	// running is closed when the observation under way has ended; nil if there is none.
	running chan struct{}
	// generation counts invalidations: an observation that began before one is not cached.
	generation int
	idle       *time.Timer
	// bytes of memory are charged to the zone's namespace for mirror and lastSeen.
	bytes int64
	// refused is why the last transfer was too large, refusedAt when it was. The observation under way owns both.
	refused   error
	refusedAt time.Time
}

// refusalPause is for how long a zone that was too large is not transferred again: that would cost as much as the first time.
const refusalPause = time.Minute

// refusal is the error for which the zone is not transferred at present; nil if it may be.
func (z *zoneEntry) refusal(now time.Time) error {
	if z.refused != nil && now.Sub(z.refusedAt) < refusalPause {
		return z.refused
	}
	return nil
}

// noteRefusal remembers that a transfer was too large.
func (z *zoneEntry) noteRefusal(err error, now time.Time) {
	if errors.Is(err, wire.ErrTooLarge) {
		z.refused, z.refusedAt = err, now
	}
}

// charge charges the memory of a zone's content to its namespace, instead of what it was. Observer.mu is held.
func (o *Observer) charge(z *zoneEntry, bytes int64) {
	if o.find(z.of) != z {
		bytes = 0 // It was forgotten meanwhile.
	}
	o.memory.Add(z.of.zone.Namespace, bytes-z.bytes)
	z.bytes = bytes
}

// find needs Observer.mu; nil if there is no entry.
func (o *Observer) find(t entryKey) *zoneEntry {
	for _, z := range o.zones[t.zone] {
		if z.of == t {
			return z
		}
	}
	return nil
}

// entryFor finds or creates an entry and restarts its idle timer. Observer.mu is held.
func (o *Observer) entryFor(t entryKey) *zoneEntry {
	z := o.find(t)
	if z == nil {
		z = &zoneEntry{of: t, server: o.acquireServer(t.server)}
		z.idle = time.AfterFunc(o.options.IdleAfter, func() { o.dropIdle(t, z) })
		o.zones[t.zone] = append(o.zones[t.zone], z)
	}
	z.idle.Reset(o.options.IdleAfter)
	return z
}

func (o *Observer) dropIdle(t entryKey, z *zoneEntry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.find(t) != z:
	case z.running != nil:
		z.idle.Reset(o.options.IdleAfter)
	default:
		o.dropEntry(t)
	}
}

// dropEntry removes an entry. Observer.mu is held.
func (o *Observer) dropEntry(t entryKey) {
	if z := o.find(t); z != nil {
		z.idle.Stop()
		o.zones[t.zone] = slices.DeleteFunc(o.zones[t.zone], func(other *zoneEntry) bool { return other == z })
		if len(o.zones[t.zone]) == 0 {
			delete(o.zones, t.zone)
		}
		o.charge(z, 0)
		o.releaseServer(t.server)
	}
}

// serverEntry is what all queries to one Peer share.
type serverEntry struct {
	peer                 Peer
	users                int // guarded by Observer.mu
	questions, transfers semaphore
	rate                 *addressRate
	meter                Meter

	mu sync.Mutex
	// unanswered is the last SOA query without an answer.
	unanswered Observation
}

// addressRate bounds the questions to one address, whoever names it. Observer.mu guards users.
type addressRate struct {
	users int
	turns *turns
}

// useServer acquires the entry of a server; the caller releases it.
func (o *Observer) useServer(peer Peer) (s *serverEntry, release func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.acquireServer(peer), func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.releaseServer(peer)
	}
}

// acquireServer finds or creates the entry of a server; releaseServer gives it back. Observer.mu is held.
func (o *Observer) acquireServer(peer Peer) *serverEntry {
	s := o.servers[peer]
	if s == nil {
		s = &serverEntry{
			peer: peer, meter: o.options.Meter, rate: o.acquireRate(peer.Addr),
			questions: make(semaphore, o.options.Questions), transfers: make(semaphore, o.options.Transfers),
		}
		o.servers[peer] = s
	}
	s.users++
	return s
}

// acquireRate counts a serverEntry as a user of its address's rate. Observer.mu is held.
func (o *Observer) acquireRate(addr netip.AddrPort) *addressRate {
	r := o.rates[addr]
	if r == nil {
		r = &addressRate{turns: newTurns(o.options.QuestionRate)}
		o.rates[addr] = r
	}
	r.users++
	return r
}

func (o *Observer) releaseServer(peer Peer) {
	s := o.servers[peer]
	if s == nil {
		return
	}
	if s.users--; s.users > 0 {
		return
	}
	delete(o.servers, peer)
	if s.rate.users--; s.rate.users == 0 {
		delete(o.rates, peer.Addr)
	}
}

// askSOA asks for a zone's SOA. While a query waits for its turn, another one to the same Peer, sent at since or later,
// may go unanswered: that counts for this one as well, so that a thousand zones on a dead server take no longer than one.
func (s *serverEntry) askSOA(ctx context.Context, name string, key *wire.Key, since time.Time, timeout time.Duration) Observation {
	addr := s.peer.Addr
	release, err := s.questions.acquire(ctx)
	if err != nil {
		return ContextEnded(ctx, addr, name)
	}
	defer release()
	if obs, ok := s.unansweredSince(since); ok {
		obs.Err = errorForZone(obs.Err, addr, name)
		return obs
	}
	at, caller := time.Now(), ctx
	ctx, stop := s.unlessRefused(ctx)
	defer stop()
	reply, err := wire.Query(ctx, addr, name, dns.TypeSOA, wire.WithTimeout(timeout), wire.WithExpire(), wire.WithKey(key))
	keyErr := err
	if !failedVerification(err) {
		keyErr = nil
	} else { // What the server answers to anybody shows that it runs, and whether it has the zone; it proves nothing.
		reply, err = wire.Query(ctx, addr, name, dns.TypeSOA, wire.WithTimeout(timeout), wire.WithExpire())
	}
	obs := observationFromReply(addr, at, name, reply, err)
	if keyErr != nil && obs.Rcode != NoReply {
		if obs.Unverified = true; obs.Authoritative {
			obs.Err = keyErr
		}
	}
	if !wire.IsLocal(obs.Err) {
		s.meter.Asked(s.peer, obs.Rcode != NoReply, time.Since(at))
		s.noteAnswered(caller, obs)
	}
	return obs
}

// noteAnswered remembers the last question if it was not answered while its caller waited.
func (s *serverEntry) noteAnswered(ctx context.Context, obs Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case obs.Rcode != NoReply:
		s.unanswered = Observation{}
	case ctx.Err() == nil:
		s.unanswered = obs
	}
}

// IsSilent reports whether a server has not answered the last question for a zone.
func (o *Observer) IsSilent(server Peer) bool {
	o.mu.Lock()
	s := o.servers[server]
	o.mu.Unlock()
	if s == nil {
		return false
	}
	_, silent := s.unansweredSince(time.Time{})
	return silent
}

// refusalGrace is how long a server that refuses TCP may take to answer over UDP. It is used to be silent.
const refusalGrace = 250 * time.Millisecond

// unlessRefused makes the context of a question to a server. If the last question was not answered, and TCP is refused as well, the
// context ends soon: nobody listens there. For UDP the kernel of the other side says that once a second at most.
func (s *serverEntry) unlessRefused(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, silent := s.unansweredSince(time.Time{}); !silent {
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		if err := wire.TryTCP(ctx, s.peer.Addr); errors.Is(err, syscall.ECONNREFUSED) {
			select {
			case <-time.After(refusalGrace):
				end(err)
			case <-ctx.Done():
			}
		}
	}()
	return ctx, func() { end(nil) }
}

// failedVerification reports whether a server answered a signed query without a valid signature, or refused the key.
func failedVerification(err error) bool {
	var e *wire.Error
	return errors.As(err, &e) && e.TSIGError != 0 || errors.Is(err, wire.ErrUnsigned) || errors.Is(err, wire.ErrSignature) || errors.Is(err, wire.ErrClock)
}

func (s *serverEntry) unansweredSince(t time.Time) (Observation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unanswered, s.unanswered.Err != nil && !s.unanswered.At.Before(t)
}

// errorForZone replaces the zone in another zone's failure: users must not read each other's zone names.
func errorForZone(err error, addr netip.AddrPort, name string) error {
	var e *wire.Error
	if !errors.As(err, &e) {
		return err
	}
	own := *e
	own.Server, own.Zone = addr.String(), name
	return &own
}

// semaphore limits how many may do something at a time.
type semaphore chan struct{}

func (s semaphore) acquire(ctx context.Context) (release func(), err error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

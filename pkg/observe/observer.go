package observe

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// Options of an Observer. Every zero value stands for the default.
type Options struct {
	// Timeout of an SOA question, its repetition included. Default: wire.DefaultTimeout.
	Timeout time.Duration
	// TransferTimeout bounds a transfer. Default: one minute.
	TransferTimeout time.Duration
	// Questions and Transfers are how many of each may be under way to one server at a time. Default: 32 and 4.
	Questions, Transfers int
	// IdleAfter is how long a zone's content is kept after it was last asked for. Default: ten minutes.
	IdleAfter time.Duration
	// Meter is told what is done. Default: nobody is.
	Meter Meter
	// Replaced is told when a zone's content on a server was transferred again, in whole or in part, with what the server was
	// last found to have. It is called before anybody learns of the new content, and by many at once. Default: nobody is told.
	Replaced func(server netip.AddrPort, was, is *Mirror)
}

func (o *Options) setDefaults() {
	o.Timeout = orDefault(o.Timeout, wire.DefaultTimeout)
	o.TransferTimeout = orDefault(o.TransferTimeout, time.Minute)
	o.Questions = orDefault(o.Questions, 32)
	o.Transfers = orDefault(o.Transfers, 4)
	o.IdleAfter = orDefault(o.IdleAfter, 10*time.Minute)
	if o.Meter == nil {
		o.Meter = noMeter{}
	}
	if o.Replaced == nil {
		o.Replaced = func(netip.AddrPort, *Mirror, *Mirror) {}
	}
}

func orDefault[T ~int | ~int64](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// Observer asks servers and keeps mirrors of their zones. It is safe for concurrent use.
type Observer struct {
	options Options

	mu      sync.Mutex
	zones   map[target]*zone
	servers map[netip.AddrPort]*server
}

type target struct {
	server netip.AddrPort
	zone   string
}

// New makes an Observer that keeps nothing yet. It needs no closing.
func New(options Options) *Observer {
	options.setDefaults()
	return &Observer{options: options, zones: map[target]*zone{}, servers: map[netip.AddrPort]*server{}}
}

// Observe tells what the server serves of the zone (a canonical name), from an observation that began at since
// or later. Calls for the same server and zone share one. The key signs transfers; the SOA is asked
// for as any resolver does. When ctx ends before the server has answered, Err says so and Rcode is NoReply; the work
// goes on and serves the next caller.
func (o *Observer) Observe(ctx context.Context, server netip.AddrPort, zone string, key *wire.Key, since time.Time) Observation {
	from := FromMemory
	defer func() { o.options.Meter.Observed(from) }()
	for {
		last, done, started := o.lastOrFlight(ctx, target{server, zone}, key, since)
		switch {
		case done == nil:
			return last
		case started:
			from = FromServer
		case from == FromMemory:
			from = FromOthers
		}
		select {
		case <-done:
		case <-ctx.Done():
			return GaveUp(ctx, server, zone)
		}
	}
}

// GaveUp is the observation of a caller whose context ended.
func GaveUp(ctx context.Context, server netip.AddrPort, zone string) Observation {
	err := &wire.Error{Op: "query", Server: server.String(), Zone: zone, Err: context.Cause(ctx)}
	return Observation{Server: server, At: time.Now(), Rcode: NoReply, Err: err}
}

// Serial asks the server for the zone's SOA and nothing else. Nothing is kept.
func (o *Observer) Serial(ctx context.Context, server netip.AddrPort, zone string) Observation {
	s := o.holdServer(server)
	defer o.releaseServer(server)
	return s.ask(ctx, server, zone, time.Now(), o.options.Timeout)
}

// Invalidate makes the next observation transfer the complete zone. An SOA alone cannot tell that a server's content
// changed under an unchanged serial; a full comparison now and then can.
func (o *Observer) Invalidate(server netip.AddrPort, zone string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if z := o.zones[target{server, zone}]; z != nil {
		z.last, z.mirror = nil, nil
		z.generation++
	}
}

// Forget drops everything that is kept about the server's zone.
func (o *Observer) Forget(server netip.AddrPort, zone string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(target{server, zone})
}

// lastOrFlight returns the last observation when it began at since or later. Else it returns a channel that is closed
// when the observation under way has ended; it starts one when there is none, and tells so.
func (o *Observer) lastOrFlight(ctx context.Context, t target, key *wire.Key, since time.Time) (last Observation, done <-chan struct{}, started bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	z := o.zone(t)
	if z.last != nil && !z.last.At.Before(since) {
		return *z.last, nil, false
	}
	if started = z.flight == nil; started {
		z.flight = make(chan struct{})
		if key != nil {
			key = new(*key) // The caller's may change before the flight has ended.
		}
		go o.fly(context.WithoutCancel(ctx), t, z, key, z.flight)
	}
	return Observation{}, z.flight, started
}

// fly makes one observation.
func (o *Observer) fly(ctx context.Context, t target, z *zone, key *wire.Key, done chan struct{}) {
	o.mu.Lock()
	generation, mirror, was := z.generation, z.mirror, z.was
	o.mu.Unlock()

	result := z.server.ask(ctx, t.server, t.zone, time.Now(), o.options.Timeout)
	if result.Authoritative {
		result = o.withContent(ctx, t, z, key, result, mirror)
	}
	if result.Mirror != nil && was != nil && result.Mirror != was {
		o.options.Replaced(t.server, was, result.Mirror)
	}

	o.mu.Lock()
	defer o.mu.Unlock()
	z.flight = nil
	if z.generation == generation {
		z.last = &result
		if result.Mirror != nil {
			z.mirror, z.was = result.Mirror, result.Mirror
		}
	}
	close(done)
}

// withContent adds the zone's content to an observation: what is known when the SOA is unchanged, else a transfer's.
func (o *Observer) withContent(ctx context.Context, t target, z *zone, key *wire.Key, obs Observation, known *Mirror) Observation {
	if known != nil && known.SOA == obs.SOA {
		obs.Mirror = known
		return obs
	}
	ctx, cancel := context.WithTimeout(ctx, o.options.TransferTimeout)
	defer cancel()
	release, err := z.server.transfers.enter(ctx)
	if err != nil {
		obs.Err = &wire.Error{Op: "transfer", Server: t.server.String(), Zone: t.zone, Err: err}
		return obs
	}
	defer release()
	if obs.Mirror, err = o.transfer(ctx, t, key, known, obs); err != nil {
		obs.Err = err
		return obs
	}
	// The zone may have moved on since the question.
	obs.SOA, obs.Serial = obs.Mirror.SOA, obs.Mirror.SOA.Serial
	return obs
}

// transfer fetches the changes since known, or everything when there is nothing known or the changes do not fit it.
func (o *Observer) transfer(ctx context.Context, t target, key *wire.Key, known *Mirror, obs Observation) (*Mirror, error) {
	if known != nil && known.SOA.Serial != obs.Serial {
		result, err := o.fetch(ctx, t, &known.SOA, key)
		if err != nil {
			return nil, err
		}
		if result.Full {
			return fromRecords(t.zone, result, known), nil
		}
		if next, err := known.apply(result, o.elder(t)); err == nil && next.SOA == result.SOA {
			return next, nil
		}
	}
	result, err := o.fetch(ctx, t, nil, key)
	if err != nil {
		return nil, err
	}
	return fromRecords(t.zone, result, o.elder(t)), nil
}

// fetch makes one transfer: the changes since a version of the zone, if the server has them, else everything.
func (o *Observer) fetch(ctx context.Context, t target, since *rrset.SOA, key *wire.Key) (wire.TransferResult, error) {
	result, err := wire.Transfer(ctx, t.server, t.zone, since, key)
	o.options.Meter.Transferred(err == nil && result.Full || err != nil && since == nil, err)
	return result, err
}

// elder finds a mirror of the same zone on the server with the least address below the given one, to share memory with.
// Servers that are asked at the same time must not take each other's: then no mirror would share with its predecessor.
func (o *Observer) elder(t target) *Mirror {
	o.mu.Lock()
	defer o.mu.Unlock()
	var mirror *Mirror
	least := t.server
	for s := range o.servers {
		if z := o.zones[target{s, t.zone}]; z != nil && z.mirror != nil && s.Compare(least) < 0 {
			mirror, least = z.mirror, s
		}
	}
	return mirror
}

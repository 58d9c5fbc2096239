package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Options of an Observer. Zero values mean the defaults.
type Options struct {
	// Timeout of an SOA query, including its retry. Default: wire.DefaultTimeout.
	Timeout time.Duration
	// TransferTimeout bounds a transfer. Default: one minute.
	TransferTimeout time.Duration
	// Questions and Transfers are how many of each may be under way to one Peer at a time. Default: 32 and 4.
	Questions, Transfers int
	// QuestionRate is how many questions an address gets in a second, at most, if it is read by query. The namespaces that ask take
	// turns. Default: no limit.
	QuestionRate int
	// IdleAfter is how long a zone's content stays cached after it was last asked for. Default: ten minutes.
	IdleAfter time.Duration
	// Limits bound the memory that servers can make the Observer take. Default: DefaultLimits.
	Limits Limits
	// Meter counts what is done. Default: nothing is counted.
	Meter Meter
	// Replaced, if not nil, is called after a transfer of a zone with the content that the server was last seen to have
	// and the new one, before any caller gets the new content. It is called concurrently.
	Replaced func(server Peer, was, is *Mirror)
}

func (o *Options) setDefaults() {
	o.Timeout = cmp.Or(max(o.Timeout, 0), wire.DefaultTimeout)
	o.TransferTimeout = cmp.Or(max(o.TransferTimeout, 0), time.Minute)
	o.Questions = cmp.Or(max(o.Questions, 0), 32)
	o.Transfers = cmp.Or(max(o.Transfers, 0), 4)
	o.IdleAfter = cmp.Or(max(o.IdleAfter, 0), 10*time.Minute)
	defaults := DefaultLimits()
	o.Limits.ZoneRecords = cmp.Or(max(o.Limits.ZoneRecords, 0), defaults.ZoneRecords)
	o.Limits.ZoneBytes = cmp.Or(max(o.Limits.ZoneBytes, 0), defaults.ZoneBytes)
	o.Limits.TotalBytes = cmp.Or(max(o.Limits.TotalBytes, 0), defaults.TotalBytes)
	if o.Meter == nil {
		o.Meter = noMeter{}
	}
}

// Observer asks servers and keeps mirrors of their zones. It is safe for concurrent use.
type Observer struct {
	options Options
	memory  memory

	mu      sync.Mutex
	zones   map[Zone][]*zoneEntry // by server and key: a zone has a few
	servers map[Peer]*serverEntry
	rates   map[netip.AddrPort]*addressRate
}

// entryKey names what is cached. What was fetched with a key is given to those alone who have it.
type entryKey struct {
	server Peer
	zone   Zone
	// byQuery is true for a partial mirror.
	byQuery bool
	key     wire.Key // zero for none
}

func entryKeyOf(server Peer, zone Zone, key *wire.Key) entryKey {
	k := entryKey{server: server, zone: zone}
	if key != nil {
		k.key = *key
	}
	return k
}

// New returns an Observer with an empty cache. It need not be closed.
func New(options Options) *Observer {
	options.setDefaults()
	return &Observer{
		options: options, zones: map[Zone][]*zoneEntry{}, servers: map[Peer]*serverEntry{}, rates: map[netip.AddrPort]*addressRate{},
		memory: newMemory(options.Limits.TotalBytes),
	}
}

// Observe asks what the server serves of the zone; the observation began at since or later. Calls for the same server and zone with the
// same key share one. The key, if it is not nil, signs the query for the SOA and transfers. If ctx ends before the server has answered,
// Err says so and Rcode is NoReply; the observation continues and serves the next caller.
func (o *Observer) Observe(ctx context.Context, server Peer, zone Zone, key *wire.Key, since time.Time) Observation {
	return o.observe(ctx, entryKeyOf(server, zone, key), key, since)
}

func (o *Observer) observe(ctx context.Context, t entryKey, key *wire.Key, since time.Time) Observation {
	from := FromMemory
	defer func() { o.options.Meter.Observed(from) }()
	for {
		last, done, started := o.lastOrStart(ctx, t, key, since)
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
			return ContextEnded(ctx, t.server.Addr, t.zone.Name)
		}
	}
}

// ContextEnded is the observation of a caller whose context ended: Rcode is NoReply, Err the context's cause.
func ContextEnded(ctx context.Context, server netip.AddrPort, zone string) Observation {
	err := &wire.Error{Op: "query", Server: server.String(), Zone: zone, Err: context.Cause(ctx)}
	return Observation{Server: server, At: time.Now(), Rcode: NoReply, Err: err}
}

// Serial asks the server for the zone's SOA and nothing else. The key, if it is not nil, signs the query. Nothing is cached.
func (o *Observer) Serial(ctx context.Context, server Peer, zone string, key *wire.Key) Observation {
	s, done := o.useServer(server)
	defer done()
	return s.askSOA(ctx, zone, key, time.Now(), o.options.Timeout)
}

// Invalidate makes the next observation transfer the complete zone. The SOA does not show whether a server's content changed
// under the same serial; an occasional full transfer does.
func (o *Observer) Invalidate(server Peer, zone Zone) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, z := range o.zones[zone] {
		if z.of.server == server && !z.of.byQuery {
			z.last, z.mirror = nil, nil // lastSeen goes on to take memory.
			z.generation++
		}
	}
}

// Forget drops everything that is cached about the server's zone.
func (o *Observer) Forget(server Peer, zone Zone) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, z := range slices.Clone(o.zones[zone]) {
		if z.of.server == server && !z.of.byQuery {
			o.dropEntry(z.of)
		}
	}
}

// lastOrStart gives the last observation if it began at since or later. Else done is closed when the observation under way has ended;
// started is true if this call began it.
func (o *Observer) lastOrStart(ctx context.Context, t entryKey, key *wire.Key, since time.Time) (last Observation, done <-chan struct{}, started bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	z := o.entryFor(t)
	if z.last != nil && !z.last.At.Before(since) {
		return *z.last, nil, false
	}
	if started = z.running == nil; started {
		z.running = make(chan struct{})
		if key != nil {
			key = new(*key) // The caller's may change before the observation has ended.
		}
		go o.runObservation(context.WithoutCancel(ctx), t, z, key, z.running)
	}
	return Observation{}, z.running, started
}

// runObservation makes one observation and closes done.
func (o *Observer) runObservation(ctx context.Context, t entryKey, z *zoneEntry, key *wire.Key, done chan struct{}) {
	o.mu.Lock()
	generation, mirror, lastSeen := z.generation, z.mirror, z.lastSeen
	o.mu.Unlock()

	if t.byQuery {
		_ = z.server.rate.turns.wait(ctx, t.server.Namespace) // The context has no end here.
	}
	result := z.server.askSOA(ctx, t.zone.Name, key, time.Now(), o.options.Timeout)
	namespace := t.zone.Namespace
	var reserved int64
	proven := result.Authoritative && !result.Unverified
	if proven && !t.byQuery {
		result = o.addContent(ctx, t, z, key, result, mirror, func(bytes int64) error {
			err := o.memory.reserve(namespace, bytes)
			if err == nil {
				reserved += bytes
			}
			return err
		})
	}
	if o.options.Replaced != nil && result.Mirror != nil && lastSeen != nil && result.Mirror != lastSeen {
		o.options.Replaced(t.server, lastSeen, result.Mirror)
	}

	o.mu.Lock()
	defer o.mu.Unlock()
	z.running = nil
	if z.generation == generation {
		if z.last = &result; proven && t.byQuery {
			z.mirror = z.mirror.rebased(t.zone.Name, result.SOA)
			result.Mirror = z.mirror
		}
		if result.Mirror != nil && !t.byQuery {
			z.mirror, z.lastSeen = result.Mirror, result.Mirror
			o.charge(z, result.Mirror.bytes)
		}
	}
	o.memory.Add(namespace, -reserved) // Before anybody goes on, who may need it for the next zone.
	close(done)
}

// addContent adds the zone's content to an observation: the known mirror if the SOA is unchanged, else that of a transfer.
func (o *Observer) addContent(ctx context.Context, t entryKey, z *zoneEntry, key *wire.Key, obs Observation, known *Mirror, reserve func(int64) error) Observation {
	if known != nil && known.SOA == obs.SOA {
		obs.Mirror = known
		return obs
	}
	if err := z.refusal(obs.At); err != nil {
		obs.Err = err
		return obs
	}
	ctx, cancel := context.WithTimeout(ctx, o.options.TransferTimeout)
	defer cancel()
	release, err := z.server.transfers.acquire(ctx)
	if err != nil {
		obs.Err = transferError(t, err)
		return obs
	}
	defer release()
	transfer := zoneTransfer{Observer: o, entryKey: t, key: key, limits: wire.Limits{
		Records: o.options.Limits.ZoneRecords, Bytes: o.options.Limits.ZoneBytes, Time: o.options.TransferTimeout, Reserve: reserve,
	}}
	mirror, err := transfer.updateMirror(ctx, known, obs)
	if err == nil {
		err = o.checkSize(mirror)
	}
	if err != nil {
		obs.Err = transferError(t, err)
		z.noteRefusal(obs.Err, obs.At)
		return obs
	}
	// The zone may have changed since the query.
	obs.Mirror, obs.SOA, obs.Serial = mirror, mirror.SOA, mirror.SOA.Serial
	return obs
}

// transferError makes a *wire.Error of any error.
func transferError(t entryKey, err error) error {
	if _, ok := errors.AsType[*wire.Error](err); ok {
		return err
	}
	return &wire.Error{Op: "transfer", Server: t.server.Addr.String(), Zone: t.zone.Name, Err: err}
}

// checkSize fails if a zone has grown beyond the limits, by transfers that kept them.
func (o *Observer) checkSize(m *Mirror) error {
	switch limits := o.options.Limits; {
	case m.records > limits.ZoneRecords:
		return &wire.LimitError{Subject: "the zone", What: fmt.Sprintf("%d records", limits.ZoneRecords), Flag: wire.RecordsFlag}
	case m.bytes > limits.ZoneBytes:
		return &wire.LimitError{Subject: "the zone", What: fmt.Sprintf("%d bytes", limits.ZoneBytes), Flag: wire.BytesFlag}
	}
	return nil
}

// zoneTransfer fetches a zone's content from a server.
type zoneTransfer struct {
	*Observer
	entryKey
	key    *wire.Key
	limits wire.Limits
}

// updateMirror fetches the changes since known, or everything if known is nil or the changes do not follow from it.
func (t zoneTransfer) updateMirror(ctx context.Context, known *Mirror, obs Observation) (*Mirror, error) {
	if known != nil && known.SOA.Serial != obs.Serial {
		result, err := t.fetch(ctx, &known.SOA)
		if err != nil {
			return nil, err
		}
		if result.Full {
			return mirrorFromRecords(t.zone.Name, result, known)
		}
		if next, err := known.applyDeltas(result, t.mirrorToShare(t.entryKey)); err == nil && next.SOA == result.SOA {
			return next, nil
		}
	}
	result, err := t.fetch(ctx, nil)
	if err != nil {
		return nil, err
	}
	return mirrorFromRecords(t.zone.Name, result, t.mirrorToShare(t.entryKey))
}

// fetch transfers the changes since a version of the zone, if the server has them, else everything.
func (t zoneTransfer) fetch(ctx context.Context, since *rrset.SOA) (wire.TransferResult, error) {
	result, err := wire.Transfer(ctx, t.server.Addr, t.zone.Name, since, t.key, wire.WithLimits(t.limits))
	t.options.Meter.Transferred(err == nil && result.Full || err != nil && since == nil, err)
	return result, err
}

// mirrorToShare chooses the mirror of the same zone on the server with the least address below the given one, to share memory with. The
// order keeps two servers from sharing with each other, so that neither would share with its own predecessor.
func (o *Observer) mirrorToShare(t entryKey) *Mirror {
	o.mu.Lock()
	defer o.mu.Unlock()
	var mirror *Mirror
	least := t.server.Addr
	for _, z := range o.zones[t.zone] {
		if addr := z.of.server.Addr; z.mirror != nil && !z.of.byQuery && addr.Compare(least) < 0 {
			mirror, least = z.mirror, addr
		}
	}
	return mirror
}

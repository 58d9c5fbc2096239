package rfc2136

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// ErrSerial means that the wanted serial is not ahead of the current one (RFC 1982): nothing was sent. Other errors of Apply are
// host.ErrConflict and host.ErrUnknown, after which the caller reads the zone and plans again, and *wire.Error, which concerns the server
// or the key as a whole.
var ErrSerial = errors.New("the wanted serial is not ahead of the current one")

// Target is a zone on a primary server, and the key that may update it.
type Target struct {
	Server netip.AddrPort
	// Zone is the zone's canonical name.
	Zone string
	Key  *wire.Key
	// Shared is true if others write to the zone as well: each RRset is compared and swapped by itself, and the SOA is the server's.
	Shared bool
	// Group names what RRsets change together, in one message; nil if each changes by itself.
	Group func(rrset.Key) string
}

// Result is how far Apply got, also if it returned an error.
type Result = host.Result

// Options of a Provider. Zero values mean the defaults.
type Options struct {
	// Timeout of one message. Default: 10 seconds.
	Timeout time.Duration
	// Connections to one server with one key at a time. Default: 4.
	Connections int
}

// Provider applies changes. It keeps idle connections open for some seconds. It is safe for concurrent use.
type Provider struct {
	timeout time.Duration
	limits  messageLimits
	pool    *connPool
}

// New fills in the defaults of o.
func New(o Options) *Provider {
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Connections <= 0 {
		o.Connections = 4
	}
	return &Provider{timeout: o.Timeout, limits: defaultLimits, pool: newConnPool(o.Connections)}
}

// Close closes the idle connections.
func (p *Provider) Close() { p.pool.closeIdle() }

// Apply applies the changes to the target whose SOA is have, in as few messages as possible, and leaves it with the SOA
// want. Intermediate messages take the serials that follow have.Serial. If they need more serials than there are up to
// want.Serial (Batches returns how many are needed if nothing is refused; a refused message may take a few more), they
// run past it: Result.SOA is where they ended. Without changes it sets the SOA alone, unless that is want already. If
// every RRset is refused the SOA stays, except for one step if the server failed (SERVFAIL) at several.
//
// Where others write as well (Target.Shared), have and want are not looked at. All RRsets but those that somebody has changed
// since they were read are swapped; host.ErrConflict says that there are such.
func (p *Provider) Apply(ctx context.Context, t Target, changes plan.Changes, have, want rrset.SOA) (Result, error) {
	if t.Shared {
		want, changes.SOA = have, false
	}
	if !changes.HasChanges() && have == want {
		return Result{SOA: have}, nil
	}
	if !t.Shared && !rrset.SerialLess(have.Serial, want.Serial) {
		return Result{SOA: have}, fmt.Errorf("%w: %d after %d", ErrSerial, want.Serial, have.Serial)
	}
	units, refused := unitsOf(t, changes, p.limits)
	if len(units) == 0 && len(refused) > 0 && !changes.SOA {
		return Result{SOA: have, Refused: refused}, nil
	}
	conn, release, err := p.pool.acquire(ctx, t.Server, t.Key)
	if err != nil {
		return Result{SOA: have, Refused: refused}, err
	}
	defer release()
	a := &applyRun{
		provider: p, conn: conn, target: t, want: want,
		result: Result{SOA: have, Refused: refused},
	}
	err = a.sendAll(ctx, packBatches(units, p.limits), changes.SOA)
	return a.result, err
}

// applyRun is one Apply under way.
type applyRun struct {
	provider *Provider
	conn     *wire.Conn
	target   Target
	want     rrset.SOA
	result   Result
	// ahead is the message after the one that is under way.
	ahead aheadMessage
	// probed is true once the server has accepted an update of the zone.
	probed bool
	// raced is the error of an RRset that somebody else has changed, failures counts those that the server failed at alone.
	raced    error
	failures int
}

func (a *applyRun) sendAll(ctx context.Context, queue [][]updateUnit, soaChanged bool) error {
	changed := soaChanged
	for len(queue) > 0 {
		batch := queue[0]
		err := a.sendFirst(ctx, queue)
		switch {
		case err == nil:
			queue, changed = queue[1:], true
		case a.target.Shared && errors.Is(err, host.ErrConflict):
			a.raced = err
			queue = splitFirst(queue)
		case len(batch) == 0 || !mayBlameRRset(err):
			return err
		default:
			if err := a.probeZone(ctx, batch, err); err != nil {
				return err
			}
			if queue = a.splitRefused(queue, err); a.failures == maxFailures {
				return err
			}
		}
	}
	if changed && rrset.SerialLess(a.result.SOA.Serial, a.want.Serial) {
		return a.exchangeSOA(ctx, a.want) // The message with the last serial was refused.
	}
	return a.raced
}

// splitFirst replaces the first batch by its halves, or drops it if it is a single unit.
func splitFirst(queue [][]updateUnit) [][]updateUnit {
	batch := queue[0]
	if len(batch) == 1 {
		return queue[1:]
	}
	half := len(batch) / 2
	return append([][]updateUnit{batch[:half], batch[half:]}, queue[1:]...)
}

// splitRefused splits the refused first batch, and blames its RRsets if it is a single unit.
func (a *applyRun) splitRefused(queue [][]updateUnit, err error) [][]updateUnit {
	if batch := queue[0]; len(batch) == 1 {
		for _, k := range batch[0].keys {
			a.result.Refused[k] = refusalError(k, err)
		}
		a.noteFailure(err)
	}
	return splitFirst(queue)
}

// probeZone finds out, once, whether the server refuses all updates of the zone (unknown key, frozen zone, a secondary), in
// which case no RRset is to blame. It sets the current SOA again, which changes nothing whether permitted or not. After a
// SERVFAIL the question is whether the server can write at all, so that the probe must change something; for a single unit
// there is no probe then, or each attempt to apply it would cost a serial.
func (a *applyRun) probeZone(ctx context.Context, batch []updateUnit, refusal error) error {
	var e *wire.Error
	failed := errors.As(refusal, &e) && e.Rcode == dns.RcodeServerFailure
	if a.probed || failed && (len(batch) == 1 || a.target.Shared) {
		return nil
	}
	soa := a.result.SOA
	if failed || !soa.SameData(a.want) {
		soa = a.want
		soa.Serial = rrset.AddSerial(a.result.SOA.Serial, 1)
	}
	if err := a.exchangeSOA(ctx, soa); err != nil {
		return err
	}
	a.probed = true
	return nil
}

// sendFirst sends the first batch. Meanwhile it makes the message of the second.
func (a *applyRun) sendFirst(ctx context.Context, queue [][]updateUnit) error {
	soa := a.soaAfter(a.result.SOA, len(queue))
	message := a.prepare(a.result.SOA, soa, queue[0])
	if len(queue) > 1 {
		have := soa
		if a.target.Shared {
			have = a.result.SOA
		}
		a.ahead = a.prepareAhead(have, a.soaAfter(have, len(queue)-1), queue[1])
	}
	return a.exchange(ctx, message, soa)
}

// soaAfter is the SOA that the next of so many remaining messages sets after that of have: the last one takes the wanted serial, those
// before it follow the current one, which leaves room for messages that a refusal may add.
func (a *applyRun) soaAfter(have rrset.SOA, left int) rrset.SOA {
	soa := a.want
	if next := rrset.AddSerial(have.Serial, 1); left > 1 || !rrset.SerialLess(next, a.want.Serial) {
		soa.Serial = next
	}
	return soa
}

// exchangeSOA sends a message that sets nothing but the SOA.
func (a *applyRun) exchangeSOA(ctx context.Context, soa rrset.SOA) error {
	return a.exchange(ctx, a.prepare(a.result.SOA, soa, nil), soa)
}

// exchange sends a message and records the zone's new SOA if the server answered NOERROR.
func (a *applyRun) exchange(ctx context.Context, m preparedMessage, soa rrset.SOA) error {
	if m.err != nil {
		return m.err
	}
	ctx, cancel := context.WithTimeout(ctx, a.provider.timeout)
	defer cancel()
	reply, err := a.conn.ExchangePrepared(ctx, m.Prepared)
	countUpdate(reply, err)
	var e *wire.Error
	switch {
	case errors.As(err, &e) && e.Sent:
		a.result.Sent++
		return fmt.Errorf("%w: %w", host.ErrUnknown, err)
	case err != nil:
		return err
	}
	a.result.Sent++
	switch reply.Rcode {
	case dns.RcodeSuccess:
		a.noteSuccess(soa)
		return nil
	case dns.RcodeNXRrset, dns.RcodeYXRrset:
		if a.target.Shared {
			return fmt.Errorf("%w: an RRset is not as it was read", host.ErrConflict)
		}
		if reply.Rcode == dns.RcodeNXRrset {
			return fmt.Errorf("%w: it is no longer at serial %d", host.ErrConflict, a.result.SOA.Serial)
		}
	}
	return &wire.Error{Op: "update", Server: a.target.Server.String(), Zone: a.target.Zone, Rcode: reply.Rcode}
}

// preparedMessage is a message that is ready to be sent, or why there is none.
type preparedMessage struct {
	*wire.Prepared
	err error
}

// aheadMessage is a message under construction, for the case that the server takes the one before it.
type aheadMessage struct {
	have, soa rrset.SOA
	batch     []updateUnit
	ready     <-chan preparedMessage
}

// prepareAhead makes a message while another one is under way.
func (a *applyRun) prepareAhead(have, soa rrset.SOA, batch []updateUnit) aheadMessage {
	ready := make(chan preparedMessage, 1)
	go func() { ready <- a.makeMessage(have, soa, batch) }()
	return aheadMessage{have, soa, batch, ready}
}

// prepare takes the message that was made ahead if it is the same, or makes one.
func (a *applyRun) prepare(have, soa rrset.SOA, batch []updateUnit) preparedMessage {
	ahead := a.ahead
	a.ahead = aheadMessage{}
	isSame := len(batch) > 0 && len(batch) == len(ahead.batch) && &batch[0] == &ahead.batch[0]
	if isSame && have == ahead.have && soa == ahead.soa {
		return <-ahead.ready
	}
	return a.makeMessage(have, soa, batch)
}

func (a *applyRun) makeMessage(have, soa rrset.SOA, batch []updateUnit) preparedMessage {
	build := buildMessage
	if a.target.Shared {
		build = buildSharedMessage
	}
	p, err := a.conn.Prepare(build(a.target.Zone, have, soa, batch))
	return preparedMessage{p, err}
}

// buildMessage makes an UPDATE: if the zone's SOA is have, replace it by soa and apply the units.
func buildMessage(zone string, have, soa rrset.SOA, batch []updateUnit) *dns.Msg {
	m := new(dns.Msg)
	m.SetUpdate(zone)
	prerequisite := rrset.ToSOA(zone, have)
	prerequisite.Hdr.Ttl = 0 // RFC 2136 section 2.4.2
	m.Answer = []dns.RR{prerequisite}
	m.Ns = append(m.Ns, rrset.ToSOA(zone, soa))
	addUnits(m, batch)
	return m
}

// addUnits adds the changes of units to an UPDATE.
func addUnits(m *dns.Msg, batch []updateUnit) {
	for _, u := range batch {
		m.Ns = append(m.Ns, u.first...)
	}
	for _, u := range batch {
		m.Ns = append(m.Ns, u.adds...)
	}
	for _, u := range batch {
		m.Ns = append(m.Ns, u.last...)
	}
}

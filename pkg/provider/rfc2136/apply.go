package rfc2136

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// Errors of Apply that ask the caller to read the zone and plan anew. Other errors are *wire.Error and concern the
// server or the key as a whole.
var (
	// ErrConflict means that the zone is not (or no longer) the one that was planned against.
	ErrConflict = errors.New("the zone was changed by someone else since it was read")
	// ErrUnknown means that a message was sent and its reply lost: the server may have applied it or not.
	ErrUnknown = errors.New("the update was sent and no valid reply came: its outcome is not known")
	// ErrSerial means that the wanted serial is not ahead of the present one (RFC 1982). Nothing was sent.
	ErrSerial = errors.New("the wanted serial is not ahead of the present one")
)

// Target is a zone on a primary server, and the key that may update it.
type Target struct {
	Server netip.AddrPort
	// Zone is the zone's canonical name.
	Zone string
	Key  *wire.Key
}

// Result is how far Apply came, also when it returned an error.
type Result struct {
	// SOA is the zone's after the last message that was answered NOERROR; the one given as have when there was none.
	SOA rrset.SOA
	// Refused holds for every RRset that the server (or the encoding) refused the reason; the others were applied.
	Refused map[rrset.Key]error
	// Sent counts messages.
	Sent int
}

// Options of a Provider. Every zero value stands for the default.
type Options struct {
	// Timeout of one message. Default: 10 seconds.
	Timeout time.Duration
	// Connections is how many are used at the same time to one server with one key. Default: 4.
	Connections int
}

// Provider applies changes. It keeps connections open for some seconds. It is safe for concurrent use.
type Provider struct {
	timeout time.Duration
	limits  limits
	pool    *pool
}

// New makes a Provider.
func New(o Options) *Provider {
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Connections <= 0 {
		o.Connections = 4
	}
	return &Provider{timeout: o.Timeout, limits: defaultLimits, pool: newPool(o.Connections)}
}

// Close closes the kept connections.
func (p *Provider) Close() { p.pool.close() }

// Apply brings the changes to the target whose SOA is have, in as few messages as fit, and leaves it with the SOA want.
// Intermediate messages take the serials that follow have.Serial. When there are more of them than room before
// want.Serial (Batches tells how much is needed when nothing is refused; a refused message may take a few more), they
// run past it: Result.SOA says where they ended. With nothing to change it sets the SOA alone, unless that is the wanted
// one already. When every RRset is refused the SOA stays, but for one step when the server failed (SERVFAIL) at several.
func (p *Provider) Apply(ctx context.Context, t Target, changes plan.Changes, have, want rrset.SOA) (Result, error) {
	if !changes.HasChanges() && have == want {
		return Result{SOA: have}, nil
	}
	if !rrset.SerialLess(have.Serial, want.Serial) {
		return Result{SOA: have}, fmt.Errorf("%w: %d after %d", ErrSerial, want.Serial, have.Serial)
	}
	units, refused := units(t.Zone, changes, p.limits)
	if len(units) == 0 && len(refused) > 0 && !changes.SOA {
		return Result{SOA: have, Refused: refused}, nil
	}
	conn, release, err := p.pool.get(ctx, t.Server, t.Key)
	if err != nil {
		return Result{SOA: have, Refused: refused}, err
	}
	defer release()
	a := &application{
		provider: p, conn: conn, target: t, want: want,
		result: Result{SOA: have, Refused: refused},
	}
	err = a.run(ctx, batches(units, p.limits), changes.SOA)
	return a.result, err
}

// application is one Apply under way.
type application struct {
	provider *Provider
	conn     *wire.Conn
	target   Target
	want     rrset.SOA
	result   Result
	// probed is true once it is known that the server takes updates of the zone from us.
	probed bool
}

func (a *application) run(ctx context.Context, queue [][]unit, soaChanged bool) error {
	changed := soaChanged
	for len(queue) > 0 {
		batch := queue[0]
		err := a.send(ctx, batch, a.serial(len(queue)))
		switch {
		case err == nil:
			queue, changed = queue[1:], true
		case len(batch) == 0 || !guilty(err):
			return err
		default:
			if err := a.probe(ctx, batch, err); err != nil {
				return err
			}
			queue = a.isolate(queue, err)
		}
	}
	if changed && rrset.SerialLess(a.result.SOA.Serial, a.want.Serial) {
		return a.send(ctx, nil, a.want.Serial) // What should have brought the last serial was refused.
	}
	return nil
}

// isolate replaces the refused batch in front by its halves, or gives it up when it cannot be halved.
func (a *application) isolate(queue [][]unit, err error) [][]unit {
	batch := queue[0]
	if len(batch) > 1 {
		half := len(batch) / 2
		return append([][]unit{batch[:half], batch[half:]}, queue[1:]...)
	}
	for _, k := range batch[0].keys {
		a.result.Refused[k] = refusal(k, err)
	}
	return queue[1:]
}

// probe finds out, once, whether the server refuses updates of the zone as such (unknown key, frozen zone, a secondary),
// so that no guilty RRset is looked for where there is none. Setting the present SOA again tells: permitted or not, it
// changes nothing. Not so after a SERVFAIL, where the question is whether the server can write at all; for a single unit
// that is left open, or each attempt to apply it would cost a serial.
func (a *application) probe(ctx context.Context, batch []unit, refusal error) error {
	var e *wire.Error
	failed := errors.As(refusal, &e) && e.Rcode == dns.RcodeServerFailure
	if a.probed || failed && len(batch) == 1 {
		return nil
	}
	soa := a.result.SOA
	if failed || !soa.SameData(a.want) {
		soa = a.want
		soa.Serial = rrset.AddSerial(a.result.SOA.Serial, 1)
	}
	if err := a.exchange(ctx, nil, soa); err != nil {
		return err
	}
	a.probed = true
	return nil
}

// serial is what the next message sets, with so many messages left, itself included: the last one takes the wanted
// serial, those before it follow the present one, so that room is left for the messages that a refusal may add.
func (a *application) serial(left int) uint32 {
	next := rrset.AddSerial(a.result.SOA.Serial, 1)
	if left == 1 && rrset.SerialLess(next, a.want.Serial) {
		return a.want.Serial
	}
	return next
}

func (a *application) send(ctx context.Context, batch []unit, serial uint32) error {
	soa := a.want
	soa.Serial = serial
	return a.exchange(ctx, batch, soa)
}

// exchange sends one message and, when the server said NOERROR, takes note of the zone's new SOA.
func (a *application) exchange(ctx context.Context, batch []unit, soa rrset.SOA) error {
	ctx, cancel := context.WithTimeout(ctx, a.provider.timeout)
	defer cancel()
	reply, err := a.conn.Exchange(ctx, message(a.target.Zone, a.result.SOA, soa, batch))
	var e *wire.Error
	switch {
	case errors.As(err, &e) && e.Sent:
		a.result.Sent++
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	case err != nil:
		return err
	}
	a.result.Sent++
	switch reply.Rcode {
	case dns.RcodeSuccess:
		a.result.SOA = soa
		return nil
	case dns.RcodeNXRrset:
		return fmt.Errorf("%w: it is not at serial %d any more", ErrConflict, a.result.SOA.Serial)
	}
	return &wire.Error{Op: "update", Server: a.target.Server.String(), Zone: a.target.Zone, Rcode: reply.Rcode}
}

// message makes one UPDATE: if the zone's SOA is have, replace it by soa and apply the units.
func message(zone string, have, soa rrset.SOA, batch []unit) *dns.Msg {
	m := new(dns.Msg)
	m.SetUpdate(zone)
	prerequisite := wire.ToSOA(zone, have)
	prerequisite.Hdr.Ttl = 0 // RFC 2136 section 2.4.2
	m.Answer = []dns.RR{prerequisite}
	m.Ns = append(m.Ns, wire.ToSOA(zone, soa))
	for _, u := range batch {
		m.Ns = append(m.Ns, u.first...)
	}
	for _, u := range batch {
		m.Ns = append(m.Ns, u.adds...)
	}
	for _, u := range batch {
		m.Ns = append(m.Ns, u.last...)
	}
	return m
}

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/miekg/dns"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/provider/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// tries is how often a pass plans anew for a primary whose zone someone else changes at the same time.
const tries = 3

// primary is one primary server of the zone during a pass.
type primary struct {
	server           observe.Server
	update, transfer *wire.Key
	// seen is the latest observation; its Mirror is what the server held then.
	seen observe.Observation
	// rest is what seen still lacks, and refused why, where the server said so.
	rest    plan.Changes
	refused map[rrset.Key]error
	// applied is what the server took in this pass.
	applied plan.Changes
	// err is why the server could not be brought along.
	err error
}

func (p *pass) primaryAt(ctx context.Context, server observe.Server) *primary {
	primary := &primary{server: server}
	instance := p.instanceOf(server)
	var errs [2]error
	primary.update, errs[0] = p.keys.update(ctx, instance)
	primary.transfer, errs[1] = p.keys.transfer(ctx, instance)
	primary.err = errors.Join(errs[:]...)
	if !server.Addr.IsValid() {
		primary.err = fmt.Errorf("pod %s does not run: %s", server.Pod, cmp.Or(server.Message, "it does not exist or has no address yet"))
	}
	return primary
}

// syncPrimaries brings all primaries to the same content and the same serial, and reads back what they then serve.
func (p *pass) syncPrimaries(ctx context.Context) {
	p.eachPrimary(func(q *primary) { p.look(ctx, q) })
	p.target = p.aim(ctx)
	p.eachPrimary(func(q *primary) { p.settle(ctx, q) })
	p.conclude()
}

// eachPrimary works on the primaries that nothing is wrong with, at the same time.
func (p *pass) eachPrimary(work func(*primary)) {
	var wg sync.WaitGroup
	for _, q := range p.primaries {
		if q.err == nil {
			wg.Go(func() { work(q) })
		}
	}
	wg.Wait()
}

// look observes a primary's zone. That it has none is no error; that it does not answer is.
func (p *pass) look(ctx context.Context, q *primary) {
	q.seen = p.deps.Observer.Observe(ctx, q.server.Addr, p.name, q.transfer, 0)
	if q.seen.Err != nil {
		q.err = q.seen.Err
		p.distrustKeys(q)
	}
	if q.seen.Mirror != nil {
		q.rest = p.changes(q.seen.Mirror)
	}
}

// distrustKeys reads the keys anew before the next pass when the server did not know one.
func (p *pass) distrustKeys(q *primary) {
	var failure *wire.Error
	if errors.As(q.err, &failure) && (failure.TSIGError != 0 || failure.Rcode == dns.RcodeNotAuth || failure.Rcode == dns.RcodeRefused) {
		p.keys.forget(p.instanceOf(q.server))
	}
}

// settle brings one primary to the target and looks again at what it serves then.
func (p *pass) settle(ctx context.Context, q *primary) {
	for try := 0; ; try++ {
		switch {
		case q.seen.Mirror == nil:
			q.err = p.create(ctx, q)
		case q.rest.HasChanges() || q.seen.SOA != p.target.soa:
			q.err = p.apply(ctx, q)
		default:
			return
		}
		again := errors.Is(q.err, rfc2136.ErrConflict) || errors.Is(q.err, rfc2136.ErrUnknown)
		if q.err != nil && !again {
			p.distrustKeys(q)
			return
		}
		q.err = nil
		p.look(ctx, q)
		if !again || q.err != nil || try == tries-1 {
			return
		}
	}
}

// apply sends what the primary lacks as RFC 2136 updates.
func (p *pass) apply(ctx context.Context, q *primary) error {
	to := p.target.soa
	if !rrset.SerialLess(q.seen.Serial, to.Serial) {
		// Someone else's change has overtaken the target.
		to.Serial = rrset.NextSerial(q.seen.Serial, to.Serial)
	}
	changes := q.rest
	result, err := p.provider.Apply(ctx, rfc2136.Target{Server: q.server.Addr, Zone: p.name, Key: q.update}, changes, q.seen.SOA, to)
	q.refused = result.Refused
	log.FromContext(ctx).Info("nsupdate sent", "zone", p.zone.Spec.ZoneName, "server", q.server.Pod, "messages", result.Sent,
		"create", len(changes.Create), "update", len(changes.UpdateNew), "delete", len(changes.Delete),
		"serial", result.SOA.Serial, "refused", len(result.Refused))
	if err == nil {
		q.applied = changes
	}
	return err
}

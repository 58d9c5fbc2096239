package zone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/miekg/dns"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/controller/tsigkeys"
	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/named"
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
	known            *primaryState
	// seen is the latest observation; its Mirror is what the server held then. It has none in a pass that found every
	// server as it was.
	seen observe.Observation
	// rest is what the server still lacks, send that without what it has refused before.
	rest, send plan.Changes
	// applied is what the server took in this pass.
	applied plan.Changes
	// err is why the server could not be brought along.
	err error
}

func (p *pass) primaryAt(ctx context.Context, server observe.Server) *primary {
	primary := &primary{server: server, known: p.state.primary(podOf(server))}
	instance := p.instanceOf(server)
	var errs [2]error
	primary.update, errs[0] = p.keys.UpdateKey(ctx, instance)
	primary.transfer, errs[1] = p.keys.TransferKey(ctx, instance)
	primary.err = errors.Join(errs[:]...)
	if !server.Addr.IsValid() {
		primary.err = fmt.Errorf("pod %s does not run: %s", server.Pod, cmp.Or(server.Message, "it does not exist or has no address yet"))
	}
	return primary
}

// syncPrimaries brings all primaries to the same content and the same serial, and reads back what they then serve. When
// nothing is to be done and every server has what it had, that costs a question to each.
func (p *pass) syncPrimaries(ctx context.Context) {
	defer p.conclude()
	if p.rested = p.atRest() && p.unchanged(ctx); p.rested {
		return
	}
	p.eachPrimary(func(q *primary) { p.look(ctx, q) })
	p.compareAll(ctx)
	if p.event.Paused {
		return
	}
	p.serials.expect(membership.KeyOfZone(p.zone), p.target.soa.Serial)
	p.eachPrimary(func(q *primary) { p.settle(ctx, q) })
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

// atRest tells whether every primary had, when it was last seen, what is desired now. One that was never seen may be away:
// it does not answer, or it is found to have changed.
func (p *pass) atRest() bool {
	var soa rrset.SOA
	for _, q := range p.primaries {
		k := q.known
		if !k.compared() {
			continue
		}
		if k.desired != p.state.desired || k.prune != p.state.prune || len(k.names) > 0 {
			return false
		}
		q.rest = k.difference.Changes(p.state.desired.SOA, k.soa)
		if k.hopeful(q.rest, p.now()).HasChanges() || soa != (rrset.SOA{}) && soa != k.soa {
			return false
		}
		soa = k.soa
	}
	return soa != (rrset.SOA{})
}

// unchanged asks every primary whether it has the zone that it had. One that does not answer does not stand in the way of
// the others.
func (p *pass) unchanged(ctx context.Context) bool {
	p.eachPrimary(func(q *primary) {
		q.seen = p.serial(ctx, q.server)
		if q.seen.Rcode == observe.NoReply {
			q.err = q.seen.Err
		}
	})
	for _, q := range p.primaries {
		if q.err == nil && (!q.seen.Authoritative || q.seen.SOA != q.known.soa) {
			return false
		}
	}
	return true
}

// look observes a primary's zone. That it has none is no error; that it does not answer is.
func (p *pass) look(ctx context.Context, q *primary) {
	q.seen = p.observe(ctx, q.server, q.transfer)
	if q.seen.Err != nil {
		q.err = q.seen.Err
		p.distrustKeys(q)
	}
}

// distrustKeys reads the keys anew before the next pass when the server did not know one.
func (p *pass) distrustKeys(q *primary) {
	var failure *wire.Error
	if errors.As(q.err, &failure) && (failure.TSIGError != 0 || failure.Rcode == dns.RcodeNotAuth || failure.Rcode == dns.RcodeRefused) {
		instance := p.instanceOf(q.server)
		p.keys.Invalidate(tsigkeys.UpdateKeySecret(instance), q.update)
		p.keys.Invalidate(tsigkeys.TransferKeySecret(instance), q.transfer)
	}
}

// compareAll finds the reference, what each primary lacks, and the target.
func (p *pass) compareAll(ctx context.Context) {
	p.findReference(ctx)
	p.doubtWhenApart()
	p.findAdditions()
	for _, q := range p.primaries {
		if q.err != nil || q.seen.Mirror == nil {
			continue
		}
		before := *q.known
		p.compare(q)
		p.noteDrift(q, before)
	}
	p.target.soa = p.aim()
}

// compare finds what a primary lacks.
func (p *pass) compare(q *primary) {
	p.comparing.Lock()
	defer p.comparing.Unlock()
	bottom := p.target.reference
	if p.target.of == q {
		bottom = nil
	}
	p.state.compare(q.known, q.seen.Mirror, bottom)
	q.rest = q.known.difference.Changes(p.state.desired.SOA, q.seen.SOA)
	q.send = q.known.hopeful(q.rest, p.now())
}

// settle brings one primary to the target and looks again at what it serves then.
func (p *pass) settle(ctx context.Context, q *primary) {
	for try := 0; ; try++ {
		created := q.seen.Mirror == nil
		switch {
		case created:
			q.err = p.create(ctx, q)
		case q.send.HasChanges() || q.seen.SOA != p.target.soa:
			q.err = p.apply(ctx, q)
		default:
			return
		}
		again := errors.Is(q.err, rfc2136.ErrConflict) || errors.Is(q.err, rfc2136.ErrUnknown)
		if again {
			p.doubt()
		}
		if q.err != nil && !again {
			p.distrustKeys(q)
			return
		}
		q.err = nil
		if p.look(ctx, q); created {
			p.await(ctx, q)
		}
		if q.err == nil && q.seen.Mirror != nil {
			p.noteAdditions(q)
			p.compare(q)
		}
		again = again || created && p.hasSignedCopy()
		if !again || q.err != nil || try == tries-1 {
			return
		}
	}
}

// await looks at a primary that has just got the zone until it serves it: a large one takes a moment to load.
func (p *pass) await(ctx context.Context, q *primary) {
	for pause := 10 * time.Millisecond; q.err == nil && !p.served(q) && pause < time.Second; pause *= 2 {
		rest(ctx, pause)
		p.look(ctx, q)
	}
}

// served tells whether a primary that has just got the zone serves it as it will be: signed, if it is to be.
func (p *pass) served(q *primary) bool {
	return q.seen.Authoritative && (!p.signing.on() || p.signing.policy == named.PolicyInsecure || q.seen.Mirror != nil && signedThrough(q.seen.Mirror))
}

// apply sends what the primary lacks as RFC 2136 updates.
func (p *pass) apply(ctx context.Context, q *primary) error {
	to := p.target.soa
	if !rrset.SerialLess(q.seen.Serial, to.Serial) {
		// Someone else's change has overtaken the target.
		to.Serial = rrset.NextSerial(q.seen.Serial, to.Serial)
	}
	changes := q.send
	result, err := p.provider.Apply(ctx, rfc2136.Target{Server: q.server.Addr, Zone: p.state.desired.Name, Key: q.update}, changes, q.seen.SOA, to)
	q.known.refuse(result.Refused, changes, p.now())
	log.FromContext(ctx).Info("nsupdate sent", "zone", p.zone.Spec.ZoneName, "server", q.server.Pod, "messages", result.Sent,
		"create", len(changes.Create), "update", len(changes.UpdateNew), "delete", len(changes.Delete),
		"serial", result.SOA.Serial, "refused", len(result.Refused))
	if err == nil {
		q.applied = changes
	}
	return err
}

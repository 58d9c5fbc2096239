package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/miekg/dns"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/provider/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/status"
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

// target is what every primary is brought to: the content of reference with the desired changes, at the SOA.
type target struct {
	// reference is the best copy of the zone that was found; nil when no server has any. What it holds beyond what was
	// ever declared is kept, so that a primary that comes back empty regains foreign data too.
	reference *observe.Mirror
	soa       rrset.SOA
}

// aim chooses the target. The reference is the primary with the latest serial; when all primaries are empty, the
// secondary with the latest, so that a replayed zone comes back on the serial that its secondaries know. The serial stays
// when the reference has nothing to change.
func (p *pass) aim(ctx context.Context) target {
	t := target{soa: p.desired.SOA}
	for _, q := range p.primaries {
		t.reference = later(t.reference, q.seen.Mirror)
	}
	if t.reference == nil {
		t.reference = p.bestSecondary(ctx)
	}
	least := p.desired.SOA.Serial
	now := uint32(p.now().Unix()) //nolint:gosec // RFC 1982 serials wrap, and so may this
	if t.reference == nil {
		t.soa.Serial = rrset.NextSerial(least, now)
		return t
	}
	have := t.reference.SOA
	changes := p.changes(t.reference)
	if !changes.HasChanges() {
		t.soa.Serial = have.Serial
		return t
	}
	t.soa.Serial = rrset.NextSerial(have.Serial, now)
	if room := rrset.AddSerial(have.Serial, uint32(rfc2136.Batches(changes))); rrset.SerialLess(t.soa.Serial, room) { //nolint:gosec // a count of messages
		t.soa.Serial = room
	}
	return t
}

func later(a, b *observe.Mirror) *observe.Mirror {
	if a == nil || (b != nil && rrset.SerialLess(a.SOA.Serial, b.SOA.Serial)) {
		return b
	}
	return a
}

// bestSecondary is the latest copy that a secondary of the zone holds.
func (p *pass) bestSecondary(ctx context.Context) *observe.Mirror {
	var best *observe.Mirror
	for _, server := range p.servers {
		if server.Role != observe.Secondary || !server.Addr.IsValid() {
			continue
		}
		key, err := p.keys.transfer(ctx, p.instanceOf(server))
		if err != nil {
			continue
		}
		best = later(best, p.deps.Observer.Observe(ctx, server.Addr, p.name, key, 0).Mirror)
	}
	return best
}

// changes is what a copy of the zone lacks.
func (p *pass) changes(m *observe.Mirror) plan.Changes {
	owned := p.owned
	if glue := p.oldGlue(m); len(glue) > 0 {
		owned = maps.Clone(owned)
		for _, key := range glue {
			owned[key] = struct{}{}
		}
	}
	return plan.Calculate(p.desired, m, owned, p.desired.SOA, m.SOA)
}

// oldGlue are the addresses of name servers that a copy of the zone names at its apex and that are no longer desired
// there. The zone object put them there, with the NS RRset that is ours alone, so they leave with it.
func (p *pass) oldGlue(m *observe.Mirror) []rrset.Key {
	const apex = dns.TypeNS
	have, _ := m.Get(rrset.Key{Name: p.name, Type: apex})
	want, _ := p.desired.Get(rrset.Key{Name: p.name, Type: apex})
	var keys []rrset.Key
	for _, host := range have.Rdata {
		if !slices.Contains(want.Rdata, host) && rrset.IsSubdomain(host, p.name) {
			keys = append(keys, rrset.Key{Name: host, Type: dns.TypeA}, rrset.Key{Name: host, Type: dns.TypeAAAA})
		}
	}
	return keys
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
	if err == nil && p.event.Changes.Len() == 0 {
		p.event.Changes = changes
	}
	return err
}

// create gives the primary the complete zone in one piece, so that it never answers from an empty one.
func (p *pass) create(ctx context.Context, q *primary) error {
	request := bindcar.CreateZone{
		ZoneName: canonicalZoneName(p.zone), ZoneType: bindcar.Primary, UpdateKeyName: q.update.Name,
		ZoneConfig: bindcar.ZoneConfig{
			TTL: p.target.soa.TTL, SOA: sidecarSOA(p.target.soa), Records: sidecarRecords(p.content()),
			AlsoNotify: p.secondaryServices(), DNSSECPolicy: p.zone.Spec.DNSSECPolicy,
		},
	}
	err := p.deps.Bindcar.CreateZone(ctx, sidecarOf(q.server), request)
	if bindcar.IsExists(err) {
		// It is configured, but its data could not be loaded. A fresh copy replaces it.
		if err = p.deps.Bindcar.DeleteZone(ctx, sidecarOf(q.server), request.ZoneName); err == nil {
			err = p.deps.Bindcar.CreateZone(ctx, sidecarOf(q.server), request)
		}
	}
	log.FromContext(ctx).Info("zone created on a primary", "zone", p.zone.Spec.ZoneName, "server", q.server.Pod,
		"rrsets", len(p.desired.RRsets), "serial", p.target.soa.Serial)
	return err
}

// content yields all RRsets of the target: the desired ones, and those of the reference that nobody here declared.
func (p *pass) content() iter.Seq[rrset.RRset] {
	return func(yield func(rrset.RRset) bool) {
		for s := range p.desired.All() {
			if !yield(s) {
				return
			}
		}
		if p.target.reference == nil {
			return
		}
		for s := range p.target.reference.All() {
			_, desired := p.desired.RRsets[s.Key]
			_, owned := p.owned[s.Key]
			if !desired && !owned && !yield(s) {
				return
			}
		}
	}
}

func sidecarSOA(soa rrset.SOA) *bindcar.SOA {
	return &bindcar.SOA{PrimaryNS: soa.MName, AdminEmail: soa.RName, Serial: soa.Serial,
		Refresh: soa.Refresh, Retry: soa.Retry, Expire: soa.Expire, NegativeTTL: soa.Minimum}
}

func sidecarRecords(content iter.Seq[rrset.RRset]) []bindcar.Record {
	var records []bindcar.Record
	for s := range content {
		ttl := s.TTL
		for _, rdata := range s.Rdata {
			records = append(records, bindcar.Record{Name: s.Name, Type: dns.TypeToString[s.Type], Value: rdata, TTL: &ttl})
		}
	}
	return records
}

// conclude turns what the primaries serve now into the outcome of the pass: an RRset is programmed when every primary
// was asked and answered with it.
func (p *pass) conclude() {
	p.event.Unprogrammed = map[rrset.Key]status.Verdict{}
	var failed []*primary
	for _, q := range p.primaries {
		if q.err != nil {
			failed = append(failed, q)
			continue
		}
		p.event.Serial = q.seen.Serial
		for key := range q.rest.Keys() {
			p.event.Unprogrammed[key] = unprogrammed(q, key)
		}
		for _, c := range q.rest.Conflicts {
			p.event.Unprogrammed[c.Want.Key] = blocked(q, c)
		}
	}
	if len(failed) > 0 {
		q := failed[0]
		p.problem(status.PrimaryFailed, "%d of %d primaries cannot be programmed; %s: %v", len(failed), len(p.primaries), q.server.Pod, q.err)
		return
	}
	if len(p.event.Unprogrammed) == 0 {
		p.event.Released = p.leaving
		return
	}
	for _, record := range p.leaving {
		if !p.stillThere(record) {
			p.event.Released = append(p.event.Released, record)
		}
	}
}

// unprogrammed says why a primary does not serve an RRset as desired.
func unprogrammed(q *primary, key rrset.Key) status.Verdict {
	if err := q.refused[key]; err != nil {
		return status.No(status.ReconcileFailed, fmt.Sprintf("%s: %v", q.server.Pod, err))
	}
	return status.No(status.ReconcileFailed, fmt.Sprintf("%s took the update without an error and does not serve %s %s as declared",
		q.server.Pod, key.Name, dns.TypeToString[key.Type]))
}

// blocked says what somebody else put into the zone that an RRset cannot stand beside.
func blocked(q *primary, c plan.Conflict) status.Verdict {
	var foreign []string
	for _, key := range c.Foreign {
		foreign = append(foreign, dns.TypeToString[key.Type])
	}
	return status.No(status.Conflict, fmt.Sprintf("%s holds %s data at %s that no object declares and that cannot stand beside %s; remove it or rename the record",
		q.server.Pod, strings.Join(foreign, ", "), c.Want.Name, dns.TypeToString[c.Want.Type]))
}

// stillThere tells whether data of a leaving record could not be taken out of the zone.
func (p *pass) stillThere(record v1beta1.Record) bool {
	for _, key := range p.keysOf(record) {
		if _, stuck := p.event.Unprogrammed[key]; stuck {
			return true
		}
	}
	return false
}

// secondaryServices are the addresses that primaries notify.
func (p *pass) secondaryServices() []string {
	return serviceAddresses(p.instances, v1beta1.RoleSecondary)
}

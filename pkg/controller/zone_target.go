package controller

import (
	"context"
	"maps"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/provider/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

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

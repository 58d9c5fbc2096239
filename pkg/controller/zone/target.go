package zone

import (
	"context"

	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/provider/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// target is what every primary is brought to: the content of reference with the desired changes, at the SOA.
type target struct {
	// reference is the best copy of the zone that was found; nil when no server has any. What it holds beyond what was
	// ever declared is kept, so that a primary that comes back empty regains foreign data too. of is the primary that has
	// it; nil when it is a secondary's.
	reference *observe.Mirror
	of        *primary
	soa       rrset.SOA
}

// findReference takes the primary with the latest serial; when all primaries are empty, the secondary with the latest, so
// that a replayed zone comes back on the serial that its secondaries know.
func (p *pass) findReference(ctx context.Context) {
	for _, q := range p.primaries {
		if q.err == nil && later(p.target.reference, q.seen.Mirror) {
			p.target.reference, p.target.of = q.seen.Mirror, q
		}
	}
	if p.target.reference == nil {
		p.target.reference = p.bestSecondary(ctx)
	}
}

// findAdditions looks for what somebody else has put on primaries, on the reference too: it may not be the next one.
func (p *pass) findAdditions() {
	for _, q := range p.primaries {
		p.noteAdditions(q)
	}
}

func (p *pass) noteAdditions(q *primary) {
	if q.err == nil && q.seen.Mirror != nil && len(p.primaries) > 1 {
		p.comparing.Lock()
		defer p.comparing.Unlock()
		p.state.additions(q.known, q.seen.Mirror)
	}
}

// later tells whether b is a later copy than a.
func later(a, b *observe.Mirror) bool {
	return b != nil && (a == nil || rrset.SerialLess(a.SOA.Serial, b.SOA.Serial))
}

// bestSecondary is the latest copy that a secondary of the zone holds.
func (p *pass) bestSecondary(ctx context.Context) *observe.Mirror {
	var best *observe.Mirror
	for _, server := range p.servers {
		if server.Role != observe.Secondary || !server.Addr.IsValid() {
			continue
		}
		key, err := p.keys.TransferKey(ctx, p.instanceOf(server))
		if err != nil {
			continue
		}
		if seen := p.observe(ctx, server, key); later(best, seen.Mirror) {
			best = seen.Mirror
		}
	}
	return best
}

// aim chooses the SOA that all primaries end on. The serial stays that of the reference while it has nothing to change and
// the others can be brought to it.
func (p *pass) aim() rrset.SOA {
	soa, now := p.state.desired.SOA, uint32(p.now().Unix()) //nolint:gosec // RFC 1982 serials wrap, and so may this
	least := soa.Serial
	if p.target.reference == nil {
		soa.Serial = rrset.NextSerial(least, now)
		return soa
	}
	have := p.target.reference.SOA.Serial
	soa.Serial = have
	if p.needsSerial(have) {
		soa.Serial = rrset.NextSerial(have, now)
		for _, q := range p.primaries {
			if room := q.room(); rrset.SerialLess(soa.Serial, room) {
				soa.Serial = room
			}
		}
	}
	return soa
}

// needsSerial tells whether a primary cannot be brought to the wanted content on the reference's serial.
func (p *pass) needsSerial(have uint32) bool {
	if p.target.of == nil {
		s := p.state
		return plan.Calculate(s.desired, p.target.reference, s.owned, s.desired.SOA, p.target.reference.SOA).HasChanges()
	}
	for _, q := range p.primaries {
		if q.send.HasChanges() && (q == p.target.of || rrset.SerialLess(have, q.room())) {
			return true
		}
	}
	return false
}

// room is the serial that the messages to a primary need at least, its own when there are none.
func (q *primary) room() uint32 {
	if !q.send.HasChanges() {
		return q.seen.Serial
	}
	return rrset.AddSerial(q.seen.Serial, uint32(rfc2136.Batches(q.send))) //nolint:gosec // a count of messages
}

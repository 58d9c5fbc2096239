package reconcile

import (
	"context"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
)

// target is what every primary is brought to: the content of reference with the desired changes, at the SOA.
type target struct {
	// reference is the best copy of the zone that was found; nil when there is none. What it holds beyond what was
	// ever declared is kept, so that a primary that comes back empty regains foreign data too. of is the primary that has
	// it; nil when it is a secondary's, or what a primary that is away held last.
	reference *observe.Mirror
	of        *primary
	// needsSerial is true when the serial of the reference may stand for other content than that.
	needsSerial bool
	soa         rrset.SOA
}

// findReference takes the primary with the latest serial; when all primaries are empty or away, the secondary with the latest, so
// that a restored zone comes back on the serial that its secondaries know, or what a primary held last if that is later. A pass
// that looks again keeps its primary, with what that holds by then. Strangers are never the reference, nor are
// secondaries that may transfer from them: when nobody else has the zone, it is an empty copy on their serial, so that they
// keep nothing but what is declared.
func (s *primarySync) findReference(ctx context.Context) (t target) {
	if len(s.line) == 0 {
		return t
	}
	if of := s.target.of; of != nil && of.err == nil && of.seen.Mirror != nil {
		return target{reference: of.seen.Mirror, of: of}
	}
	for _, q := range s.line {
		if q.err == nil && !s.isStranger(q.server) && isLater(t.reference, q.seen.Mirror) {
			t.reference, t.of = q.seen.Mirror, q
		}
	}
	if t.reference != nil {
		return t
	}
	for _, h := range s.hosts {
		if !h.Restores() || len(s.strangers) > 0 || h.SignIn(ctx) != nil {
			continue
		}
		if seen := h.Observe(ctx); isLater(t.reference, seen.Mirror) {
			t.reference = seen.Mirror
		}
	}
	for _, q := range s.line {
		if last := q.known.LastCopy(); !s.isStranger(q.server) && isLater(t.reference, last) {
			t.reference, t.needsSerial = last, true
		}
	}
	if t.reference != nil {
		clean, had := s.state.content.WithoutLeftovers(t.reference)
		t.reference, t.needsSerial = clean, t.needsSerial || had
		return t
	}
	for _, q := range s.line {
		if q.err == nil && isLater(t.reference, q.seen.Mirror) {
			t.reference = observe.NewMirror(s.dnsName(), q.seen.SOA)
		}
	}
	return t
}

// isLater reports whether b is a later copy than a.
func isLater(a, b *observe.Mirror) bool {
	return b != nil && (a == nil || rrset.SerialLess(a.SOA.Serial, b.SOA.Serial))
}

// chooseSOA returns the SOA that all primaries end on. The serial stays that of the reference while it has nothing to change
// and the others can be brought to it.
func (s *primarySync) chooseSOA() rrset.SOA {
	soa := s.state.content.Desired().SOA
	switch {
	case s.target.reference == nil:
		soa.Serial = s.newSerial(soa.Serial)
	case s.needsNewSerial():
		soa.Serial = s.newSerial(s.target.reference.SOA.Serial)
	default:
		soa.Serial = s.target.reference.SOA.Serial
	}
	return soa
}

// newSerial returns a serial after last that no primary has had, not even one that is away now: whoever transferred the zone from it with
// that serial would not notice that there is other content.
func (s *primarySync) newSerial(last uint32) uint32 {
	serial := rrset.NextSerial(last, uint32(s.now().Unix())) //nolint:gosec // RFC 1982 serials wrap, and so may this
	if s.isBelowDeclared(last) {
		serial = s.state.content.Desired().SOA.Serial
	}
	for _, q := range s.line {
		if latest, may := q.known.HasBeenAt(serial); may {
			serial = rrset.AddSerial(latest, 1)
		}
	}
	for _, q := range s.line {
		if least := q.leastSerial(); q.seen.Mirror != nil && rrset.SerialLess(serial, least) {
			serial = least
		}
	}
	return serial
}

// isBelowDeclared reports whether a serial comes before the lowest one that the zone may have.
func (s *primarySync) isBelowDeclared(serial uint32) bool {
	least := s.state.content.Desired().SOA.Serial
	return least != 0 && rrset.SerialLess(serial, least)
}

// needsNewSerial reports whether a primary cannot be brought to the wanted content on the reference's serial, or the zone may not
// have that.
func (s *primarySync) needsNewSerial() bool {
	if s.isBelowDeclared(s.target.reference.SOA.Serial) {
		return true
	}
	if s.target.of == nil {
		return s.target.needsSerial || s.state.content.ChangesOf(s.target.reference).HasChanges()
	}
	for _, q := range s.line {
		if q.seen.Mirror != nil && rrset.SerialLess(s.target.reference.SOA.Serial, q.seen.Serial) {
			return true // A stranger is ahead.
		}
		if q.sendable.HasChanges() && (q == s.target.of || rrset.SerialLess(s.target.reference.SOA.Serial, q.leastSerial())) {
			return true
		}
	}
	return false
}

// leastSerial returns the serial that the messages to a primary need at least, its own when there are none.
func (q *primary) leastSerial() uint32 {
	if !q.sendable.HasChanges() {
		return q.seen.Serial
	}
	return rrset.AddSerial(q.seen.Serial, uint32(rfc2136.Batches(q.sendable))) //nolint:gosec // a count of messages
}

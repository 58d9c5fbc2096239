package primary

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/kinds"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
)

// target is what every primary is brought to: the content of reference with the desired changes, at the SOA.
type target struct {
	// reference is the best copy of the zone that was found; nil when there is none. What it holds beyond what was
	// ever declared is kept, so that a primary that comes back empty regains foreign data too. of is the ID of the primary that has
	// it; zero when it is a secondary's, or what a primary that is away held last.
	reference *observe.Mirror
	of        types.NamespacedName
	// needsSerial is true when the serial of the reference may stand for other content than that.
	needsSerial bool
	soa         rrset.SOA
}

// findReference takes the primary with the latest serial; when all primaries are empty or away, the secondary with the latest, so
// that a restored zone comes back on the serial that its secondaries know, or what a primary held last if that is later. A pass
// that looks again keeps its primary, with what that holds by then. Strangers are never the reference, nor are
// secondaries that may transfer from them, nor those of others with a former zone: when nobody else has the zone, it is an
// empty copy on their serial, so that they keep nothing but what is declared.
func (p Pass) findReference(ctx context.Context, line []State, before target) (t target) {
	if len(line) == 0 {
		return t
	}
	for _, q := range line {
		if q.At.ID == before.of && q.Err == nil && q.Seen.Mirror != nil {
			return target{reference: q.Seen.Mirror, of: before.of}
		}
	}
	for _, q := range line {
		if q.Err == nil && !p.isStranger(q.At.Server) && isLater(t.reference, q.Seen.Mirror) {
			t.reference, t.of = q.Seen.Mirror, q.At.ID
		}
	}
	if t.reference != nil {
		return t
	}
	t, former := p.findLost(ctx, line)
	if t.reference != nil {
		return t
	}
	t.reference = former
	for _, q := range line {
		if q.Err == nil && isLater(t.reference, q.Seen.Mirror) {
			t.reference = observe.NewMirror(p.Zone.Name, q.Seen.SOA)
		}
	}
	return t
}

// findLost takes the latest copy of a zone that no primary has: a secondary's, or what a primary held last. former is an empty copy on the
// latest serial of a former zone, if secondaries of others have one.
func (p Pass) findLost(ctx context.Context, line []State) (t target, former *observe.Mirror) {
	for _, h := range p.Hosts {
		if !h.At().Restores || len(p.Strangers) > 0 || h.SignIn(ctx) != nil {
			continue
		}
		seen := h.Observe(ctx)
		if !seen.Authoritative || seen.Mirror == nil {
			continue
		}
		if h.At().HadContent && p.isFormer(seen.Mirror.SOA.Serial) {
			if isLater(former, seen.Mirror) {
				former = observe.NewMirror(p.Zone.Name, seen.Mirror.SOA)
			}
			continue
		}
		if !isLater(t.reference, seen.Mirror) {
			continue
		}
		if evicted, err := h.Claim(ctx); !evicted && err == nil { // A zone of another DNSZone is not this one, lost.
			t.reference = seen.Mirror
		}
	}
	for _, q := range line {
		if last := q.Known.LastCopy(); !p.isStranger(q.At.Server) && isLater(t.reference, last) {
			t.reference, t.needsSerial = last, true
		}
	}
	if t.reference != nil {
		clean, had := p.Content.WithoutLeftovers(t.reference)
		t.reference, t.needsSerial = clean, t.needsSerial || had
	}
	return t, former
}

// isFormer reports whether what a server of others holds on a serial is another DNSZone's, which had this one's name before: such a server knows
// no owners. This one was on no server yet, or has had serials since its creation that are times, as Lockstep gives them, and later ones.
func (p Pass) isFormer(serial uint32) bool {
	object := p.Zone.Object
	if object.Status.Serial == nil {
		return true
	}
	created := uint32(object.CreationTimestamp.Unix())                                                    //nolint:gosec // RFC 1982 serials wrap
	return rrset.SerialLess(serial, created) && !rrset.SerialLess(uint32(*object.Status.Serial), created) //nolint:gosec // a serial has 32 bits
}

// isStranger reports whether data that nobody declares is not followed from a server.
func (p Pass) isStranger(server observe.Server) bool {
	return slices.ContainsFunc(p.Strangers, func(i *v1beta1.Bind9Instance) bool { return kinds.IsServerOf(i, server) })
}

// isLater reports whether b is a later copy than a.
func isLater(a, b *observe.Mirror) bool {
	return b != nil && (a == nil || rrset.SerialLess(a.SOA.Serial, b.SOA.Serial))
}

// chooseSOA returns the SOA that all primaries end on. The serial stays that of the reference while it has nothing to change
// and the others can be brought to it.
func (p Pass) chooseSOA(line []State, t target) rrset.SOA {
	soa := p.Content.Desired().SOA
	switch {
	case t.reference != nil && p.needsNewSerial(line, t):
		soa.Serial = p.newSerial(line, &t.reference.SOA.Serial)
	case t.reference == nil && soa.Serial != 0:
		soa.Serial = p.newSerial(line, &soa.Serial)
	case t.reference == nil:
		soa.Serial = p.newSerial(line, nil)
	default:
		soa.Serial = t.reference.SOA.Serial
	}
	return soa
}

// newSerial returns a serial after last, nil if there is none, that no primary has had, not even one that is away now: whoever transferred the
// zone from it with that serial would not notice that there is other content. What primaries had before this process began is in the zone's
// status.
func (p Pass) newSerial(line []State, last *uint32) uint32 {
	now := uint32(p.Zone.Now().Unix()) //nolint:gosec // RFC 1982 serials wrap, and so may this
	serial := max(now, 1)
	if last != nil {
		serial = rrset.NextSerial(*last, now)
	}
	if last != nil && p.isBelowDeclared(*last) {
		serial = p.Content.Desired().SOA.Serial
	}
	if known, later := p.laterSerial(last); later && !rrset.SerialLess(known, serial) {
		serial = rrset.AddSerial(known, 1)
	}
	for _, q := range line {
		if latest, may := q.Known.HasBeenAt(serial); may {
			serial = rrset.AddSerial(latest, 1)
		}
	}
	for _, q := range line {
		if least := q.leastSerial(); q.Seen.Mirror != nil && rrset.SerialLess(serial, least) {
			serial = least
		}
	}
	return serial
}

// laterSerial returns the serial in the zone's status, if it comes after last, or there is no last one.
func (p Pass) laterSerial(last *uint32) (known uint32, later bool) {
	if p.Zone.Object.Status.Serial == nil {
		return 0, false
	}
	known = uint32(*p.Zone.Object.Status.Serial) //nolint:gosec // a serial has 32 bits
	return known, last == nil || rrset.SerialLess(*last, known)
}

// isBelowDeclared reports whether a serial comes before the lowest one that the zone may have.
func (p Pass) isBelowDeclared(serial uint32) bool {
	least := p.Content.Desired().SOA.Serial
	return least != 0 && rrset.SerialLess(serial, least)
}

// needsNewSerial reports whether a primary cannot be brought to the wanted content on the reference's serial, or the zone may not
// have that.
func (p Pass) needsNewSerial(line []State, t target) bool {
	if p.isBelowDeclared(t.reference.SOA.Serial) {
		return true
	}
	if t.of == (types.NamespacedName{}) {
		return t.needsSerial || p.Content.ChangesOf(t.reference).HasChanges()
	}
	for _, q := range line {
		if q.Seen.Mirror != nil && rrset.SerialLess(t.reference.SOA.Serial, q.Seen.Serial) {
			return true // A stranger is ahead.
		}
		if q.Seen.Mirror != nil && q.Known.AwaitsUpdate(q.Seen.SOA) {
			return true // What it changes may not be wanted any more, and nobody would know then whose it is.
		}
		if q.sendable.HasChanges() && (q.At.ID == t.of || rrset.SerialLess(t.reference.SOA.Serial, q.leastSerial())) {
			return true
		}
	}
	return false
}

// leastSerial returns the serial that the messages to a primary need at least, its own when there are none.
func (q State) leastSerial() uint32 {
	if !q.sendable.HasChanges() {
		return q.Seen.Serial
	}
	return rrset.AddSerial(q.Seen.Serial, uint32(rfc2136.Batches(q.sendable))) //nolint:gosec // a count of messages
}

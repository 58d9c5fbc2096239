package reconcile

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/content"
)

// maxTries is how often a pass plans anew for a primary whose zone someone else changes at the same time.
const maxTries = 3

// primary is the zone on one primary server, as far as a pass has come there. A step takes one and returns what has become of it.
type primary struct {
	host  host.Primary
	at    host.Place
	known *content.Primary
	// seen is the latest observation; its Mirror is what the server held then. It has none in a pass that found every
	// server as it was.
	seen observe.Observation
	// lacking is what the server still lacks; sendable is the part of it that the server has not refused before.
	lacking, sendable plan.Changes
	// applied is what the server took in this pass, and written the SOA with which that left it. sent is host.ErrConflict or
	// host.ErrUnknown if the last that it was sent may not be there.
	applied plan.Changes
	written rrset.SOA
	sent    error
	// drifted are RRsets that somebody else changed on the server. overtaken is true if that happened after the last update.
	drifted   []drift
	overtaken bool
	// unsettled is true when the zone has to be looked at once more, on all primaries.
	unsettled bool
	// err is why the server could not be brought along.
	err error
}

// isOnLine reports whether the primary is kept on one content and one serial with the zone's others.
func (q primary) isOnLine() bool { return q.at.Line == "" }

// split returns the primaries that are kept on the target, and those on lines of their own.
func split(primaries []primary) (line, others []primary) {
	for _, q := range primaries {
		if q.isOnLine() {
			line = append(line, q)
		} else {
			others = append(others, q)
		}
	}
	return line, others
}

// each takes a step with the primaries that nothing is wrong with, at the same time.
func each(primaries []primary, step func(primary) primary) []primary {
	next := slices.Clone(primaries)
	var wg sync.WaitGroup
	for i, q := range primaries {
		if q.err == nil {
			wg.Go(func() { next[i] = step(q) })
		}
	}
	wg.Wait()
	return next
}

// withError is the primary after an error, as it is if that is nil. When the server did not know a key, keys are read anew before the next
// pass.
func (q primary) withError(err error) primary {
	if err == nil {
		return q
	}
	q.err = err
	var failure *wire.Error
	if errors.As(err, &failure) && (failure.TSIGError != 0 || failure.Rcode == dns.RcodeNotAuth || failure.Rcode == dns.RcodeRefused) {
		q.host.ForgetKeys()
	}
	return q
}

// findPrimaries returns the primaries of the zone, with their keys.
func (p zonePass) findPrimaries(ctx context.Context) (primaries []primary) {
	for _, h := range p.hosts {
		at := h.At()
		if at.Role != observe.Primary {
			continue
		}
		q := primary{host: h.(host.Primary), at: at, known: p.state.content.Primary(at.ID, at.Line != "", at.Owner)}
		if q.err = q.host.Obstacle(); q.err == nil {
			q.err = q.host.SignIn(ctx)
		}
		primaries = append(primaries, q)
	}
	return primaries
}

// countSigners counts the primaries that would sign the zone.
func countSigners(primaries []primary) (n int) {
	for _, q := range primaries {
		if !errors.Is(q.err, host.ErrSignedHere) {
			n++
		}
	}
	return n
}

// reconcilePrimaries brings all primaries to the same content and the same serial, the target, and reads back what they then serve. When
// every server has what it had and nothing is to be done, they rest, and that costs a question to each.
func (p zonePass) reconcilePrimaries(ctx context.Context, primaries []primary) (_ []primary, t target, rested bool) {
	var present []types.NamespacedName
	for _, q := range primaries {
		present = append(present, q.at.ID)
	}
	p.state.content.KeepPrimaries(present)
	if !p.forgetReloaded(primaries) {
		primaries, rested = p.checkRest(ctx, primaries)
	}
	for try, again := 1, !rested; again; try++ {
		primaries = each(primaries, func(q primary) primary { return p.observePrimary(ctx, q) })
		if primaries, t = p.compareAll(ctx, primaries, t); p.isPaused() {
			break
		}
		p.serials.Expect(p.key(), t.soa.Serial)
		changes := p.planChanges(primaries, t)
		primaries = each(primaries, func(q primary) primary { return p.apply(ctx, q, changes[q.at.ID], t) })
		if slices.ContainsFunc(primaries, func(q primary) bool { return q.sent != nil && q.isOnLine() }) {
			p.state.verified.Clear()
		}
		again = try < maxTries && slices.ContainsFunc(primaries, func(q primary) bool { return q.err == nil && q.unsettled })
	}
	primaries = each(primaries, func(q primary) primary { return q.withError(notServed(q, p.isPaused())) })
	if !p.isPaused() {
		primaries, t = p.compareAlone(primaries, t)
	}
	return primaries, t, rested
}

// forgetReloaded has the zone read in whole from the primaries that have loaded it again: the serial says nothing about it
// then. It reports whether there are any.
func (p zonePass) forgetReloaded(primaries []primary) (some bool) {
	reloaded := p.serials.TakeReloaded(p.key())
	for _, q := range primaries {
		if reloaded.Has(q.at.ID) && q.err == nil {
			q.host.Forget()
			some = true
		}
	}
	return some
}

// checkRest reports whether every primary had, when it was last seen, what is desired now, and still has it. One that was never seen may be
// away: it does not answer, or it is found to have changed.
func (p zonePass) checkRest(ctx context.Context, primaries []primary) (checked []primary, rests bool) {
	checked = slices.Clone(primaries)
	var soa rrset.SOA
	for i, q := range primaries {
		if !q.known.WasCompared() {
			continue
		}
		if checked[i].lacking, rests = p.state.content.IsAtRest(q.known, p.now()); !rests {
			return checked, false
		}
		if !q.isOnLine() {
			continue
		}
		if soa != (rrset.SOA{}) && soa != q.known.SOA || p.isBelowDeclared(q.known.SOA.Serial) {
			return checked, false
		}
		soa = q.known.SOA
	}
	if !rests {
		return checked, false
	}
	// Only signed answers are believed. One that does not answer, or not with its key, does not stand in the way of the others.
	checked = each(checked, func(q primary) primary {
		q.seen = q.host.Serial(ctx)
		return q.withError(q.seen.Err)
	})
	return checked, !slices.ContainsFunc(checked, func(q primary) bool {
		return q.err == nil && (!q.seen.Authoritative || q.seen.SOA != q.known.SOA)
	})
}

// observePrimary reads a primary's zone. That it has none is no error; that it does not answer is. A zone that another DNSZone
// has left there is removed.
func (p zonePass) observePrimary(ctx context.Context, q primary) primary {
	q.seen = p.readPrimary(ctx, q)
	if q.seen.Err == nil && q.seen.Authoritative {
		var evicted bool
		if evicted, q.err = q.host.Claim(ctx); evicted {
			q.seen = p.readPrimary(ctx, q)
		}
	}
	return q.withError(q.seen.Err)
}

// readPrimary reads a zone in whole, or what is declared of it, or was.
func (p zonePass) readPrimary(ctx context.Context, q primary) observe.Observation {
	return q.host.Read(ctx, func() (iter.Seq[rrset.Key], plan.Content) {
		return p.state.content.KeysInQuestion(q.known), p.state.content.Desired()
	})
}

// compareAll finds the target, and what each primary lacks of it.
func (p zonePass) compareAll(ctx context.Context, primaries []primary, last target) ([]primary, target) {
	line, _ := split(primaries)
	t := p.findReference(ctx, line, last)
	if areApart(line, t) {
		p.state.verified.Clear() // The content of every secondary is read again.
	}
	p.keepWhatWasThere(line)
	for _, q := range line { // The reference, too: it may not be the next one.
		p.noteForeign(q)
	}
	compared := slices.Clone(primaries)
	for i, q := range primaries {
		if q.err == nil && q.seen.Mirror != nil {
			before := *q.known
			compared[i] = p.noteDrift(before, p.compare(q, t))
		}
	}
	compared = p.holdBack(compared, t)
	line, _ = split(compared)
	t.soa = p.chooseSOA(line, t)
	return compared, t
}

// areApart reports whether the primaries hold different versions of the zone, or did since the last pass.
func areApart(line []primary, t target) bool {
	return slices.ContainsFunc(line, func(q primary) bool {
		return q.err == nil && (q.seen.Mirror == nil || q.seen.SOA != q.known.SOA || q.seen.SOA != t.reference.SOA)
	})
}

// keepWhatWasThere keeps what nobody declares on any primary when one that others run is seen for the first time. Until then it had
// content of its own, and its serial says nothing about which of it is wanted.
func (p zonePass) keepWhatWasThere(line []primary) {
	isNew := func(q primary) bool {
		return q.at.HadContent && q.err == nil && q.seen.Mirror != nil && !q.known.WasCompared()
	}
	if len(line) < 2 || !slices.ContainsFunc(line, isNew) {
		return
	}
	for _, first := range []bool{true, false} { // What is there counts for more than what comes there.
		for _, q := range line {
			if isNew(q) == first && q.err == nil && q.seen.Mirror != nil && !p.isStranger(q.at.Server) {
				p.state.content.KeepForeign(q.seen.Mirror)
			}
		}
	}
}

// noteForeign keeps what somebody else has put on a primary, unless it is a stranger or others write there as well.
func (p zonePass) noteForeign(q primary) {
	if q.err == nil && q.seen.Mirror != nil && p.countOnLine() > 1 && q.isOnLine() && !p.isStranger(q.at.Server) {
		p.state.content.NoteForeign(q.known, q.seen.Mirror)
	}
}

// compare finds what a primary lacks.
func (p zonePass) compare(q primary, t target) primary {
	bottom := t.reference
	if t.of == q.at.ID || !q.isOnLine() {
		bottom = nil
	}
	p.state.content.Compare(q.known, q.seen.Mirror, bottom)
	q.lacking = p.state.content.Changes(q.known, q.seen.SOA)
	p.state.content.NoteStanding(q.known, q.lacking, p.now())
	q.sendable = q.known.Sendable(q.lacking, p.now())
	return q
}

// compareAlone compares a primary with what is declared alone when all were filled from a copy of a secondary: what nobody
// declares counts as desired on them.
func (p zonePass) compareAlone(primaries []primary, t target) ([]primary, target) {
	i := slices.IndexFunc(primaries, func(q primary) bool { return q.isOnLine() && q.err == nil && q.seen.Mirror != nil })
	if t.of != (types.NamespacedName{}) || t.reference == nil || i < 0 {
		return primaries, t
	}
	t.of = primaries[i].at.ID
	compared := slices.Clone(primaries)
	compared[i] = p.compare(primaries[i], t)
	return compared, t
}

// Package primary brings a zone to its primaries: it reads what each holds, chooses one content and one serial for all, sends every server
// what it lacks, and reads back what that serves then. The reconciler of zones calls it in each pass; what a secondary has is not its concern.
package primary

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/content"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/notify"
)

// MaxTries is how often a pass plans anew for a primary whose zone someone else changes at the same time.
const MaxTries = 3

// Pass is what a pass over a zone hands on for its primaries.
type Pass struct {
	Zone *host.Zone
	// Hosts are all hosts of the zone. Of those that are no primaries, some may give a lost zone back.
	Hosts   []host.Host
	Content *content.Zone
	Serials *notify.Serials
	// Strangers are the instances whose undeclared data is not the zone's.
	Strangers []*v1beta1.Bind9Instance
	// WasStuck reports of an RRset whether the pass before could not bring it to what is desired.
	WasStuck func(rrset.Key) bool
	// NoteApart is called when primaries hold different versions of the zone, or may.
	NoteApart func()
}

// Result is how a pass has left the primaries.
type Result struct {
	Primaries []State
	// Serial is the one that those on the zone's line were brought to. It is unknown, 0, of primaries that Rested: nothing was to be done,
	// and no server had changed.
	Serial uint32
	Rested bool
}

// State is the zone on one primary server, as far as a pass has come there. A step takes one and returns what has become of it.
type State struct {
	Host  host.Primary
	At    host.Place
	Known *content.Primary
	// Seen is the latest observation; its Mirror is what the server held then. It has none in a pass that found every
	// server as it was.
	Seen observe.Observation
	// Lacking is what the server still lacks; sendable is the part of it that the server has not refused before.
	Lacking, sendable plan.Changes
	// Applied is what the server took in this pass, and written the SOA with which that left it. sent is host.ErrConflict or
	// host.ErrUnknown if the last that it was sent may not be there.
	Applied plan.Changes
	written rrset.SOA
	sent    error
	// Drifted are RRsets that somebody else changed on the server. Overtaken is true if that happened after the last update.
	Drifted   []Drift
	Overtaken bool
	// unsettled is true when the zone has to be looked at once more, on all primaries.
	unsettled bool
	// Err is why the server could not be brought along.
	Err error
}

// IsOnLine reports whether the primary is kept on one content and one serial with the zone's others.
func (q State) IsOnLine() bool { return q.At.Line == "" }

// Split returns the primaries that are kept on the target, and those on lines of their own.
func Split(primaries []State) (line, others []State) {
	for _, q := range primaries {
		if q.IsOnLine() {
			line = append(line, q)
		} else {
			others = append(others, q)
		}
	}
	return line, others
}

// each takes a step with the primaries that nothing is wrong with, at the same time.
func each(primaries []State, step func(State) State) []State {
	next := slices.Clone(primaries)
	var wg sync.WaitGroup
	for i, q := range primaries {
		if q.Err == nil {
			wg.Go(func() { next[i] = step(q) })
		}
	}
	wg.Wait()
	return next
}

// withError is the primary after an error, as it is if that is nil. When the server did not know a key, keys are read anew before the next
// pass.
func (q State) withError(err error) State {
	if err == nil {
		return q
	}
	if q.Err = err; wire.MayConcernKey(err) {
		q.Host.ForgetKeys()
	}
	return q
}

// Find returns the primaries of the zone, with their keys.
func (p Pass) Find(ctx context.Context) (primaries []State) {
	for _, h := range p.Hosts {
		at := h.At()
		if at.Role != observe.Primary {
			continue
		}
		q := State{Host: h.(host.Primary), At: at, Known: p.Content.Primary(at.ID, at.Line != "", at.Owner)}
		if q.Err = q.Host.Obstacle(); q.Err == nil {
			q.Err = q.Host.SignIn(ctx)
		}
		primaries = append(primaries, q)
	}
	return primaries
}

// CountSigners counts the primaries that would sign the zone.
func CountSigners(primaries []State) (n int) {
	for _, q := range primaries {
		if !errors.Is(q.Err, host.ErrSignedHere) {
			n++
		}
	}
	return n
}

// Reconcile brings all primaries to the same content and the same serial, the target, and reads back what they then serve. When
// every server has what it had and nothing is to be done, they rest, and that costs a question to each.
func (p Pass) Reconcile(ctx context.Context, primaries []State) Result {
	var (
		t       target
		rested  bool
		present []types.NamespacedName
	)
	for _, q := range primaries {
		present = append(present, q.At.ID)
	}
	p.Content.KeepPrimaries(present)
	if !p.forgetReloaded(primaries) {
		primaries, rested = p.checkRest(ctx, primaries)
	}
	for try, again := 1, !rested; again; try++ {
		primaries = each(primaries, func(q State) State { return p.observePrimary(ctx, q) })
		if primaries, t = p.compareAll(ctx, primaries, t); p.Zone.Paused {
			break
		}
		p.Serials.Expect(p.Zone.Key, t.soa.Serial)
		changes := p.planChanges(primaries, t)
		primaries = each(primaries, func(q State) State { return p.apply(ctx, q, changes[q.At.ID], t) })
		if slices.ContainsFunc(primaries, func(q State) bool { return q.sent != nil && q.IsOnLine() }) {
			p.NoteApart()
		}
		again = try < MaxTries && slices.ContainsFunc(primaries, func(q State) bool { return q.Err == nil && q.unsettled })
	}
	primaries = each(primaries, func(q State) State { return q.withError(notServed(q, p.Zone.Paused)) })
	if !p.Zone.Paused {
		primaries, t = p.compareAlone(primaries, t)
	}
	return Result{Primaries: primaries, Serial: t.soa.Serial, Rested: rested}
}

// forgetReloaded has the zone read in whole from the primaries that have loaded it again: the serial says nothing about it
// then. It reports whether there are any.
func (p Pass) forgetReloaded(primaries []State) (some bool) {
	reloaded := p.Serials.TakeReloaded(p.Zone.Key)
	for _, q := range primaries {
		if reloaded.Has(q.At.ID) && q.Err == nil {
			q.Host.Forget()
			some = true
		}
	}
	return some
}

// checkRest reports whether every primary had, when it was last seen, what is desired now, and still has it. One that was never seen may be
// away: it does not answer, or it is found to have changed.
func (p Pass) checkRest(ctx context.Context, primaries []State) (checked []State, rests bool) {
	checked = slices.Clone(primaries)
	var soa rrset.SOA
	for i, q := range primaries {
		if !q.Known.WasCompared() {
			continue
		}
		if checked[i].Lacking, rests = p.Content.IsAtRest(q.Known, p.Zone.Now()); !rests {
			return checked, false
		}
		if !q.IsOnLine() {
			continue
		}
		if soa != (rrset.SOA{}) && soa != q.Known.SOA || p.isBelowDeclared(q.Known.SOA.Serial) {
			return checked, false
		}
		soa = q.Known.SOA
	}
	if !rests {
		return checked, false
	}
	// Only signed answers are believed. One that does not answer, or not with its key, does not stand in the way of the others.
	checked = each(checked, func(q State) State {
		q.Seen = q.Host.Serial(ctx)
		return q.withError(q.Seen.Err)
	})
	return checked, !slices.ContainsFunc(checked, func(q State) bool {
		return q.Err == nil && (!q.Seen.Authoritative || q.Seen.SOA != q.Known.SOA)
	})
}

// observePrimary reads a primary's zone. That it has none is no error; that it does not answer is. A zone that another DNSZone
// has left there is removed.
func (p Pass) observePrimary(ctx context.Context, q State) State {
	q.Seen = p.readPrimary(ctx, q)
	if q.Seen.Err == nil && q.Seen.Authoritative {
		var evicted bool
		if evicted, q.Err = q.Host.Claim(ctx); evicted {
			q.Seen = p.readPrimary(ctx, q)
		}
	}
	return q.withError(q.Seen.Err)
}

// readPrimary reads a zone in whole, or what is declared of it, or was.
func (p Pass) readPrimary(ctx context.Context, q State) observe.Observation {
	return q.Host.Read(ctx, func() (iter.Seq[rrset.Key], plan.Content) {
		return p.Content.KeysInQuestion(q.Known), p.Content.Desired()
	})
}

// compareAll finds the target, and what each primary lacks of it.
func (p Pass) compareAll(ctx context.Context, primaries []State, last target) ([]State, target) {
	line, _ := Split(primaries)
	t := p.findReference(ctx, line, last)
	if areApart(line, t) {
		p.NoteApart() // The content of every secondary is read again.
	}
	p.keepWhatWasThere(line)
	for _, q := range line { // The reference, too: it may not be the next one.
		p.noteForeign(q)
	}
	compared := slices.Clone(primaries)
	for i, q := range primaries {
		if q.Err == nil && q.Seen.Mirror != nil {
			before := *q.Known
			compared[i] = p.noteDrift(before, p.compare(q, t))
		}
	}
	compared = p.holdBack(compared, t)
	line, _ = Split(compared)
	t.soa = p.chooseSOA(line, t)
	return compared, t
}

// areApart reports whether the primaries hold different versions of the zone, or did since the last pass.
func areApart(line []State, t target) bool {
	return slices.ContainsFunc(line, func(q State) bool {
		return q.Err == nil && (q.Seen.Mirror == nil || q.Seen.SOA != q.Known.SOA || q.Seen.SOA != t.reference.SOA)
	})
}

// keepWhatWasThere keeps what nobody declares on any primary when one that others run is seen for the first time. Until then it had
// content of its own, and its serial says nothing about which of it is wanted.
func (p Pass) keepWhatWasThere(line []State) {
	isNew := func(q State) bool {
		return q.At.HadContent && q.Err == nil && q.Seen.Mirror != nil && !q.Known.WasCompared()
	}
	if len(line) < 2 || !slices.ContainsFunc(line, isNew) {
		return
	}
	for _, first := range []bool{true, false} { // What is there counts for more than what comes there.
		for _, q := range line {
			if isNew(q) == first && q.Err == nil && q.Seen.Mirror != nil && !p.isStranger(q.At.Server) {
				p.Content.KeepForeign(q.Seen.Mirror)
			}
		}
	}
}

// noteForeign keeps what somebody else has put on a primary, unless it is a stranger or others write there as well.
func (p Pass) noteForeign(q State) {
	if q.Err == nil && q.Seen.Mirror != nil && p.Zone.OnLine > 1 && q.IsOnLine() && !p.isStranger(q.At.Server) {
		p.Content.NoteForeign(q.Known, q.Seen.Mirror)
	}
}

// compare finds what a primary lacks.
func (p Pass) compare(q State, t target) State {
	bottom := t.reference
	if t.of == q.At.ID || !q.IsOnLine() {
		bottom = nil
	}
	p.Content.Compare(q.Known, q.Seen.Mirror, bottom)
	q.Lacking = p.Content.Changes(q.Known, q.Seen.SOA)
	p.Content.NoteStanding(q.Known, q.Lacking, p.Zone.Now())
	q.sendable = q.Known.Sendable(q.Lacking, p.Zone.Now())
	return q
}

// compareAlone compares a primary with what is declared alone when all were filled from a copy of a secondary: what nobody
// declares counts as desired on them.
func (p Pass) compareAlone(primaries []State, t target) ([]State, target) {
	i := slices.IndexFunc(primaries, func(q State) bool { return q.IsOnLine() && q.Err == nil && q.Seen.Mirror != nil })
	if t.of != (types.NamespacedName{}) || t.reference == nil || i < 0 {
		return primaries, t
	}
	t.of = primaries[i].At.ID
	compared := slices.Clone(primaries)
	compared[i] = p.compare(primaries[i], t)
	return compared, t
}

// ErrNotCreated is a primary that does not have a paused zone.
var ErrNotCreated = errors.New("it does not have the zone, which is paused: nothing is created")

// notServed says why a primary does not serve the zone, or what it was sent, although nothing has failed; nil if it does.
func notServed(q State, paused bool) error {
	switch {
	case errors.Is(q.sent, host.ErrUnknown) && (q.sendable.HasChanges() || q.Known.AwaitsUpdate(q.Seen.SOA)):
		return q.sent // It was not applied so far, and this is all that the server says.
	case q.Seen.Authoritative:
		return nil
	case paused:
		return ErrNotCreated
	}
	return fmt.Errorf("it does not serve the zone yet: %s", q.Seen.Message())
}

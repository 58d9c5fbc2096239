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

// primary is one primary server of the zone during a pass.
type primary struct {
	host   host.Primary
	server observe.Server
	known  *content.Primary
	// seen is the latest observation; its Mirror is what the server held then. It has none in a pass that found every
	// server as it was.
	seen observe.Observation
	// lacking is what the server still lacks, sendable that without what it has refused before.
	lacking, sendable plan.Changes
	// applied is what the server took in this pass, and written the SOA with which that left it.
	applied plan.Changes
	written rrset.SOA
	// drifted are RRsets that somebody else changed on the server, with the values added there. overtaken is true if that happened after the
	// last update.
	drifted   map[rrset.Key][]string
	overtaken bool
	// unsettled is true when the zone has to be looked at once more, on all primaries.
	unsettled bool
	// err is why the server could not be brought along.
	err error
}

// isOnLine reports whether the primary is kept on one content and one serial with the zone's others.
func (q *primary) isOnLine() bool { return q.host.Line() == "" }

// findPrimaries returns the primaries of the zone, with their keys.
func (p zonePass) findPrimaries(ctx context.Context) (primaries []*primary) {
	for _, h := range p.hosts {
		if h.At().Role != observe.Primary {
			continue
		}
		q := &primary{host: h.(host.Primary), server: h.At(), known: p.state.content.Primary(h.ID(), h.Line() != ""), drifted: map[rrset.Key][]string{}}
		if q.err = q.host.Obstacle(); q.err == nil {
			q.err = q.host.SignIn(ctx)
		}
		primaries = append(primaries, q)
	}
	return primaries
}

// countSigners counts the primaries that would sign the zone.
func countSigners(primaries []*primary) (n int) {
	for _, q := range primaries {
		if !errors.Is(q.err, host.ErrSignedHere) {
			n++
		}
	}
	return n
}

// primarySync is what a pass does to the primaries, and with which result.
type primarySync struct {
	zonePass
	primaries []*primary
	// line are the primaries that are kept on the target, others those on lines of their own.
	line, others []*primary
	target       target
	// rested is true when nothing was to be done and no server had changed.
	rested bool
}

// syncPrimaries brings all primaries to the same content and the same serial, and reads back what they then serve. When
// nothing is to be done and every server has what it had, that costs a question to each.
func (p zonePass) syncPrimaries(ctx context.Context, primaries []*primary, paused bool) *primarySync {
	s := &primarySync{zonePass: p, primaries: primaries}
	for _, q := range primaries {
		if q.isOnLine() {
			s.line = append(s.line, q)
		} else {
			s.others = append(s.others, q)
		}
	}
	p.state.content.KeepPrimaries(podsOf(primaries))
	if reloaded := s.forgetReloaded(); !reloaded && s.isAtRest() && s.isUnchanged(ctx) {
		s.rested = true
		return s
	}
	for try, again := 1, true; again; try++ {
		s.forEachPrimary(func(q *primary) { s.observePrimary(ctx, q) })
		if s.compareAll(ctx); paused {
			return s
		}
		p.serials.Expect(p.key(), s.target.soa.Serial)
		s.forEachPrimary(func(q *primary) { s.settle(ctx, q, try == maxTries) })
		again = try < maxTries && slices.ContainsFunc(primaries, func(q *primary) bool { return q.err == nil && q.unsettled })
	}
	s.countForeign()
	return s
}

// forgetReloaded has the zone read in whole from the primaries that have loaded it again: the serial says nothing about it
// then. It reports whether there are any.
func (s *primarySync) forgetReloaded() (some bool) {
	reloaded := s.serials.TakeReloaded(s.key())
	for _, q := range s.primaries {
		if reloaded.Has(q.host.ID()) && q.err == nil {
			q.host.Forget()
			some = true
		}
	}
	return some
}

// forEachPrimary works on the primaries that nothing is wrong with, at the same time.
func (s *primarySync) forEachPrimary(work func(*primary)) {
	var wg sync.WaitGroup
	for _, q := range s.primaries {
		if q.err == nil {
			wg.Go(func() { work(q) })
		}
	}
	wg.Wait()
}

// isAtRest reports whether every primary had, when it was last seen, what is desired now. One that was never seen may be
// away: it does not answer, or it is found to have changed.
func (s *primarySync) isAtRest() bool {
	var soa rrset.SOA
	some := false
	for _, q := range s.primaries {
		if !q.known.WasCompared() {
			continue
		}
		rests := false
		if q.lacking, rests = s.state.content.IsAtRest(q.known, s.now()); !rests {
			return false
		}
		some = true
		if !q.isOnLine() {
			continue
		}
		if soa != (rrset.SOA{}) && soa != q.known.SOA || s.isBelowDeclared(q.known.SOA.Serial) {
			return false
		}
		soa = q.known.SOA
	}
	return some
}

// isUnchanged asks every primary whether it has the zone that it had, and believes only signed answers. One that does not
// answer, or not with its key, does not stand in the way of the others.
func (s *primarySync) isUnchanged(ctx context.Context) bool {
	s.forEachPrimary(func(q *primary) {
		q.seen = q.host.Serial(ctx)
		if q.seen.Err != nil {
			q.err = q.seen.Err
			q.forgetRefusedKeys()
		}
	})
	for _, q := range s.primaries {
		if q.err == nil && (!q.seen.Authoritative || q.seen.SOA != q.known.SOA) {
			return false
		}
	}
	return true
}

// observePrimary reads a primary's zone. That it has none is no error; that it does not answer is. A zone that another DNSZone
// has left there is removed.
func (s *primarySync) observePrimary(ctx context.Context, q *primary) {
	q.seen = s.observeContent(ctx, q)
	if q.seen.Err == nil && q.seen.Authoritative {
		var evicted bool
		if evicted, q.err = q.host.Claim(ctx); evicted {
			q.seen = s.observeContent(ctx, q)
		}
	}
	if q.seen.Err != nil {
		q.err = q.seen.Err
		q.forgetRefusedKeys()
	}
}

// observeContent reads a zone in whole, or what is declared of it, or was.
func (s *primarySync) observeContent(ctx context.Context, q *primary) observe.Observation {
	return q.host.Read(ctx, func() (iter.Seq[rrset.Key], plan.Content) {
		return s.state.content.KeysInQuestion(q.known), s.state.content.Desired()
	})
}

// forgetRefusedKeys has the keys read anew before the next pass when the server did not know one.
func (q *primary) forgetRefusedKeys() {
	var failure *wire.Error
	if errors.As(q.err, &failure) && (failure.TSIGError != 0 || failure.Rcode == dns.RcodeNotAuth || failure.Rcode == dns.RcodeRefused) {
		q.host.ForgetKeys()
	}
}

// compareAll finds what each primary lacks, and the target.
func (s *primarySync) compareAll(ctx context.Context) {
	s.target = s.findReference(ctx)
	if s.areApart() {
		s.state.verified.Clear() // The content of every secondary is read again.
	}
	s.keepWhatWasThere()
	for _, q := range s.primaries { // The reference, too: it may not be the next one.
		s.noteForeign(q)
	}
	for _, q := range s.primaries {
		if q.err != nil || q.seen.Mirror == nil {
			continue
		}
		before := *q.known
		s.compare(q)
		for key, added := range s.state.content.Drift(before, q.seen.Mirror, q.lacking) {
			if _, stuck := s.state.last.unprogrammed[key]; !stuck {
				s.noteOverwritten(q, key, added)
			}
		}
		s.noteOverwrittenAgain(q)
	}
	s.holdBack()
	s.target.soa = s.chooseSOA()
}

// areApart reports whether the primaries hold different versions of the zone, or did since the last pass.
func (s *primarySync) areApart() bool {
	for _, q := range s.line {
		if q.err == nil && (q.seen.Mirror == nil || q.seen.SOA != q.known.SOA || q.seen.SOA != s.target.reference.SOA) {
			return true
		}
	}
	return false
}

// keepWhatWasThere keeps what nobody declares on any primary when one that others run is seen for the first time. Until then it had
// content of its own, and its serial says nothing about which of it is wanted.
func (s *primarySync) keepWhatWasThere() {
	isNew := func(q *primary) bool {
		return q.host.HadContent() && q.err == nil && q.seen.Mirror != nil && !q.known.WasCompared()
	}
	if len(s.line) < 2 || !slices.ContainsFunc(s.line, isNew) {
		return
	}
	for _, first := range []bool{true, false} { // What is there counts for more than what comes there.
		for _, q := range s.line {
			if isNew(q) == first && q.err == nil && q.seen.Mirror != nil && !s.isStranger(q.server) {
				s.state.content.KeepForeign(q.seen.Mirror)
			}
		}
	}
}

// noteForeign keeps what somebody else has put on a primary, unless it is a stranger or others write there as well.
func (s *primarySync) noteForeign(q *primary) {
	if q.err == nil && q.seen.Mirror != nil && len(s.line) > 1 && q.isOnLine() && !s.isStranger(q.server) {
		s.state.content.NoteForeign(q.known, q.seen.Mirror)
	}
}

// compare finds what a primary lacks.
func (s *primarySync) compare(q *primary) {
	bottom := s.target.reference
	if s.target.of == q || !q.isOnLine() {
		bottom = nil
	}
	s.state.content.Compare(q.known, q.seen.Mirror, bottom)
	q.lacking = s.state.content.Changes(q.known, q.seen.SOA)
	s.state.content.NoteStanding(q.known, q.lacking, s.now())
	q.sendable = q.known.Sendable(q.lacking, s.now())
}

// noteOverwrittenAgain takes note of what a primary lacks after it had it, or took it, since somebody else had overwritten it last.
func (s *primarySync) noteOverwrittenAgain(q *primary) {
	for key := range q.lacking.Keys() {
		if q.known.WasOurs(key) {
			has, _ := q.seen.Mirror.Get(key)
			s.noteOverwritten(q, key, s.state.content.AddedValues(has, nil))
		}
	}
	q.sendable = q.known.Sendable(q.lacking, s.now())
}

// noteOverwritten takes note that somebody else has overwritten a declared RRset on a primary, and added values to it.
func (s *primarySync) noteOverwritten(q *primary, key rrset.Key, added []string) {
	q.drifted[key] = append(q.drifted[key], added...)
	want, declared := s.state.content.Desired().Get(key)
	if !declared {
		return
	}
	seen, _ := q.seen.Mirror.Get(key)
	atOnce := content.OwnCorrections
	if q.server.Provider != "" {
		atOnce = content.ForeignCorrections
	}
	q.known.NoteOverwritten(want, seen, atOnce, s.now())
}

// settle brings one primary along: it gets the zone if it has none, or what it lacks. If somebody else was faster, it is unsettled: all
// primaries are looked at once more, because what was seen of the others is no newer. What nobody declares would come back from that.
func (s *primarySync) settle(ctx context.Context, q *primary, last bool) {
	q.unsettled, q.overtaken = false, false
	switch {
	case q.seen.Mirror == nil:
		s.create(ctx, q)
	case q.sendable.HasChanges() || q.isOnLine() && q.seen.SOA != s.target.soa:
		s.catchUp(ctx, q, last)
	}
}

// create gives a primary the zone, and waits until it serves it.
func (s *primarySync) create(ctx context.Context, q *primary) {
	if q.err = q.host.Missing(q.seen); q.err != nil || q.written != (rrset.SOA{}) {
		return // Nobody can create it there, or it is loading what it has got.
	}
	err := s.createOnPrimary(ctx, q)
	if !s.isSent(q, err) {
		return
	}
	s.readBack(ctx, q)
	s.awaitLoaded(ctx, q)
	s.compareSent(q, err)
	q.unsettled = q.unsettled || q.overtaken || s.signing.CanRestore(s.target.reference)
}

// catchUp sends a primary what it lacks, and reads back what it serves then.
func (s *primarySync) catchUp(ctx context.Context, q *primary, last bool) {
	err := s.applyChanges(ctx, q)
	if !s.isSent(q, err) {
		return
	}
	s.readBack(ctx, q)
	s.compareSent(q, err)
	q.unsettled = q.unsettled || q.overtaken || q.lacksMore()
	if last && q.err == nil && errors.Is(err, host.ErrUnknown) && q.sendable.HasChanges() {
		q.err = err // It was never applied, and this is all that the server says.
		q.forgetRefusedKeys()
	}
}

// isSent takes note of how it went to send a primary something, and reports whether that may be there: it is read back then.
func (s *primarySync) isSent(q *primary, err error) bool {
	q.unsettled = errors.Is(err, host.ErrConflict) || errors.Is(err, host.ErrUnknown)
	if q.unsettled && q.isOnLine() {
		s.state.verified.Clear()
	}
	if q.err = nil; err != nil && !q.unsettled {
		q.err = err
		q.forgetRefusedKeys()
		return false
	}
	return true
}

// compareSent finds what a primary lacks that was read back.
func (s *primarySync) compareSent(q *primary, sent error) {
	if q.err != nil || q.seen.Mirror == nil {
		return
	}
	s.noteForeign(q)
	s.compare(q)
	s.noteOverwrittenAgain(q)
	s.noteOvertaking(q, errors.Is(sent, host.ErrConflict))
}

// noteOvertaking finds out whether somebody else changed the zone between the update and the look at it: then what the server
// lacks is not what it ignored. Where others write as well, that shows if it was before the update.
func (s *primarySync) noteOvertaking(q *primary, raced bool) {
	if q.isOnLine() {
		raced = q.seen.SOA != q.written
	}
	q.overtaken = raced && q.sendable.HasChanges()
	if !q.overtaken {
		return
	}
	for key := range q.sendable.Keys() {
		if _, declared := s.state.content.Desired().Get(key); declared {
			has, _ := q.seen.Mirror.Get(key)
			s.noteOverwritten(q, key, s.state.content.AddedValues(has, nil))
		}
	}
	q.sendable = q.known.Sendable(q.lacking, s.now())
}

// lacksMore reports whether a primary lacks what the update that it took did not have: another primary was seen with it meanwhile.
func (q *primary) lacksMore() bool {
	if !q.sendable.HasChanges() {
		return false
	}
	sent := map[rrset.Key]bool{}
	for key := range q.applied.Keys() {
		sent[key] = true
	}
	for key := range q.sendable.Keys() {
		if !sent[key] {
			return true
		}
	}
	return false
}

// readBack reads a primary's zone after an update. A serial that has not moved shows nothing where it is not ours to set.
func (s *primarySync) readBack(ctx context.Context, q *primary) {
	before := q.seen.SOA
	if s.observePrimary(ctx, q); !q.isOnLine() && q.err == nil && q.seen.SOA == before {
		q.host.Forget()
		s.observePrimary(ctx, q)
	}
}

// countForeign compares a primary with what is declared alone when all were filled from a copy of a secondary: what nobody
// declares counts as desired on them.
func (s *primarySync) countForeign() {
	if s.target.of != nil || s.target.reference == nil {
		return
	}
	for _, q := range s.line {
		if q.err == nil && q.seen.Mirror != nil {
			s.target.of = q
			s.compare(q)
			return
		}
	}
}

func podsOf(primaries []*primary) (pods []types.NamespacedName) {
	for _, q := range primaries {
		pods = append(pods, q.host.ID())
	}
	return pods
}

package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/backend"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/primary"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// conclude completes the outcome of declare with how the zone is on its hosts, and remembers what the next pass has to know of that.
func (p zonePass) conclude(declared statuswriter.SyncCompleted, r reconciled) statuswriter.SyncCompleted {
	event := declared
	event.Programmed, event.Servers = r.programmable, r.servers
	if !p.hasHosts() {
		event.Released = p.releaseAll()
		return event
	}
	event = p.addContent(event, r.Primaries, r.stored)
	if !r.programmable.Holds() {
		return p.addUnserved(event, r)
	}
	event = p.addHeld(event)
	isStuck := isStuckIn(event)
	p.remember(r, isStuck)
	event.DNSSEC, event.DNSSECKnown, event.Remark = p.state.dnssec, p.state.dnssecKnown, cmp.Or(r.remark, p.signing.Remark(p.state.dnssec))
	event.Removed = corrected(r.Primaries, isStuck)
	event.Drift = len(event.Removed)
	if failed := r.failed(); len(failed) > 0 {
		event.Programmed, event.Failure = p.primaryProblem(failed, len(r.Primaries))
		event.Released, event.Held = p.holdMoves(failed, len(r.Primaries), isStuck)
	}
	if event.Programmed.Holds() {
		p.noteSettled(r.Primaries, event.Serial)
		event.Released = p.release(event.Servers, isStuck)
	}
	return p.addUnserved(event, r)
}

// addUnserved adds what hosts cannot hold, or hold and do not answer with. They have nothing else of it: what leaves need not wait for that.
func (p zonePass) addUnserved(event statuswriter.SyncCompleted, r reconciled) statuswriter.SyncCompleted {
	add := func(verdicts map[rrset.Key]status.Verdict) {
		for key, verdict := range verdicts {
			if _, stuck := event.Unprogrammed[key]; !stuck {
				event.Unprogrammed[key] = verdict
			}
		}
	}
	for _, q := range r.Primaries {
		if q.Err == nil {
			add(p.apexOf(q.Host.Apex))
		}
	}
	for _, out := range r.stored {
		if add(out.Unsupported); out.Err == nil {
			add(p.apexOf(func(string) string { return fmt.Sprintf("DNSProvider %s: %s", out.Name, out.Apex) }))
		}
	}
	add(r.hidden)
	return event
}

// remember keeps what the next pass has to know of the primaries.
func (p zonePass) remember(r reconciled, isStuck func(rrset.Key) bool) {
	p.state.noteFailing(r.failed(), p.now())
	signer := p.signer()
	var signed *v1beta1.DNSSECStatus
	for _, q := range r.Primaries {
		if host.IsTerminal(q.Err) {
			q.Known.RefuseZone(q.Err, p.now())
		}
		if q.Err != nil {
			continue
		}
		q.Known.ForgetRefusals(isStuck)
		q.Known.ForgetLate(p.now())
		if q.Seen.Mirror != nil && signer.shows(q) {
			signed = cmp.Or(signer.statusOf(q.Seen.Mirror, p.lastDelegation(), p.now()), signed)
			p.state.dnssec, p.state.dnssecKnown = signed, true
		}
	}
}

// serialOf is the zone's serial on its primaries, if it is known.
func (p zonePass) serialOf(primaries []primary.State) (serial uint32, isKnown bool) {
	for _, q := range primaries {
		if q.Err == nil && (q.IsOnLine() || p.countOnLine() == 0) {
			serial, isKnown = q.Seen.Serial, true
		}
	}
	return serial, isKnown
}

// addContent adds what is where the zone is written to: an RRset is programmed when every primary was asked and answered with it, and every
// provider that is no DNS server was read with it.
func (p zonePass) addContent(event statuswriter.SyncCompleted, primaries []primary.State, stored []backend.Outcome) statuswriter.SyncCompleted {
	event.Unprogrammed = map[rrset.Key]status.Verdict{}
	event.Serial, event.SerialKnown = p.serialOf(primaries)
	for _, q := range primaries {
		if event.Changes.Len() == 0 {
			event.Changes = q.Applied
		}
		if errors.Is(q.Err, primary.ErrNotCreated) {
			event.Pending = max(event.Pending, p.state.content.Desired().Len())
		}
		if q.Err != nil {
			continue
		}
		if event.Paused {
			event.Pending = max(event.Pending, q.Lacking.Len())
		}
		contests := q.Known.Contests(p.now())
		for _, c := range contests {
			event.Contested = append(event.Contested, contested(q, c))
		}
		maps.Copy(event.Unprogrammed, p.unprogrammedOn(q, contests))
		if count, some := q.Known.Foreign(); count > event.Foreign {
			event.Foreign, event.ForeignSample = count, some
		}
	}
	return p.addStored(event, stored)
}

// addStored adds what providers hold that are no DNS servers.
func (p zonePass) addStored(event statuswriter.SyncCompleted, stored []backend.Outcome) statuswriter.SyncCompleted {
	for _, out := range stored {
		event.Backends = append(event.Backends, statuswriter.BackendOutcome{Provider: out.Name, Err: out.Err})
		maps.Copy(event.Unprogrammed, out.Unprogrammed)
		if event.Pending = max(event.Pending, out.Pending); event.Changes.Len() == 0 {
			event.Changes = out.Applied
		}
		if event.Foreign == 0 {
			event.Foreign, event.ForeignSample = out.Foreign, out.ForeignSample
		}
		if out.Err != nil {
			why, failure := backendProblem(out)
			event.Programmed, event.Failure = why, cmp.Or(failure, event.Failure)
		}
	}
	return event
}

// addHeld adds what the zone's guard holds back.
func (p zonePass) addHeld(event statuswriter.SyncCompleted) statuswriter.SyncCompleted {
	hold := p.state.content.Hold()
	if event.HeldPlan = hold.Plan; hold.Plan == "" {
		return event
	}
	verdict := status.HeldBack(p.zone.Name)
	for key := range p.state.content.HeldBack() {
		event.Unprogrammed[key] = verdict
	}
	var held []string
	for key := range hold.Keys() {
		held = append(held, key.String())
	}
	event.Guarded = status.GuardHolds(p.zone, hold.Plan, len(hold.Removed), len(hold.Changed), held)
	if event.Failure.Reason == "" {
		event.Failure = event.Guarded
	}
	return event
}

// noteSettled forgets what was ours once all primaries were seen without it, and what somebody else has put on one once all have it.
func (p zonePass) noteSettled(primaries []primary.State, serial uint32) {
	line, others := primary.Split(primaries)
	kept := map[bool][]primary.State{true: others, false: line}
	p.state.content.ForgetRetired(func(key rrset.Key, isShared bool) bool { return p.isGone(kept[isShared], key) }, serial, p.now())
	var mirrors []*observe.Mirror
	for _, q := range line {
		mirrors = append(mirrors, q.Seen.Mirror)
	}
	if p.state.content.SettleForeign(mirrors) {
		p.zones.Enqueue(p.key())
	}
}

// isStuckIn reports of an RRset whether a pass could not bring it to what is desired.
func isStuckIn(event statuswriter.SyncCompleted) func(rrset.Key) bool {
	return func(key rrset.Key) bool { _, stuck := event.Unprogrammed[key]; return stuck }
}

// noteFailing remembers since when each primary could not be brought along.
func (s *zoneState) noteFailing(failed []primary.State, now time.Time) {
	since := map[types.NamespacedName]time.Time{}
	for _, q := range failed {
		pod := q.At.ID
		if since[pod] = now; !s.failingSince[pod].IsZero() {
			since[pod] = s.failingSince[pod]
		}
	}
	s.failingSince = since
}

// corrected returns the RRsets that somebody else changed and that are as desired now, with the values that somebody else had added.
func corrected(primaries []primary.State, isStuck func(rrset.Key) bool) map[rrset.Key][]string {
	corrected := map[rrset.Key][]string{}
	for _, q := range primaries {
		for _, d := range q.Drifted {
			if !isStuck(d.Key) {
				corrected[d.Key] = append(corrected[d.Key], d.Added...)
			}
		}
	}
	return corrected
}

// isGone reports whether nothing of ours was seen of an RRset on any of some primaries.
func (p zonePass) isGone(primaries []primary.State, key rrset.Key) bool {
	for _, q := range primaries {
		if q.Seen.Mirror == nil || !q.Host.Knows(key) || q.Known.MayStillGet(key, p.now()) {
			return false
		}
		if !p.state.content.IsClear(q.Known, q.Seen.Mirror, key) {
			return false
		}
	}
	return true
}

// touchedSince returns the objects whose status an outcome concerns: those that changed, and those about which the last one said something
// else. all means every object.
func touchedSince(last lastOutcome, event statuswriter.SyncCompleted) (keys []source.ObjectKey, all bool) {
	all = event.All || !last.known || last.programmed != event.Programmed
	if event.Desired == nil || last.desired == nil {
		return event.Touched, true
	}
	touched := make(map[source.ObjectKey]struct{}, len(event.Touched))
	for _, key := range event.Touched {
		touched[key] = struct{}{}
	}
	for key := range event.Desired.ChangedObjects(last.desired) {
		touched[key] = struct{}{}
	}
	for key := range differingKeys(last.unprogrammed, event.Unprogrammed) {
		set, _ := event.Desired.RRsets.Get(key)
		for _, owners := range set.Owners {
			for _, ref := range owners {
				touched[ref.Key()] = struct{}{}
			}
		}
	}
	for _, o := range event.Released {
		delete(touched, source.KeyOf(o)) // Its release is in its status.
	}
	return slices.Collect(maps.Keys(touched)), all
}

// differingKeys returns the RRsets of which the verdicts do not say the same.
func differingKeys(a, b map[rrset.Key]status.Verdict) map[rrset.Key]struct{} {
	keys := map[rrset.Key]struct{}{}
	for _, verdicts := range []map[rrset.Key]status.Verdict{a, b} {
		for key := range verdicts {
			if a[key] != b[key] {
				keys[key] = struct{}{}
			}
		}
	}
	return keys
}

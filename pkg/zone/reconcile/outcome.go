package reconcile

import (
	"maps"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/backend"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// conclude turns what the primaries serve now into the outcome of the pass: an RRset is programmed when every primary
// was asked and answered with it, and every provider that is no DNS server was read with it. It reports whether all could be
// brought along, and whether such a provider could not.
func (p zonePass) conclude(synced *primarySync, stored []backend.Outcome, event *statuswriter.SyncCompleted) (settled, unreached bool) {
	event.Unprogrammed = map[rrset.Key]status.Verdict{}
	isStuck := func(key rrset.Key) bool { _, stuck := event.Unprogrammed[key]; return stuck }
	var failed []*primary
	for _, q := range synced.primaries {
		if event.Changes.Len() == 0 {
			event.Changes = q.applied
		}
		if q.err == nil && !q.seen.Authoritative {
			q.err = notServed(q, event.Paused)
			event.Pending = max(event.Pending, p.state.content.Desired().Len())
		}
		if q.err != nil {
			failed = append(failed, q)
			continue
		}
		p.addPrimary(q, event)
	}
	unreached = p.addBackends(stored, event)
	for _, q := range synced.primaries {
		if q.err == nil {
			q.known.ForgetRefusals(isStuck)
		}
	}
	if len(synced.line) > 0 {
		p.serials.Expect(p.key(), event.Serial)
	}
	p.addSigning(synced.primaries, event)
	event.Removed = synced.corrected(isStuck)
	event.Drift = len(event.Removed)
	if !event.Paused {
		event.Pending = 0
	}
	p.state.noteFailing(failed, p.now())
	if len(failed) > 0 {
		p.addFailure(failed, len(synced.primaries), event)
		p.holdMoves(failed, len(synced.primaries), isStuck, event)
	}
	if len(failed) > 0 || unreached {
		return false, unreached
	}
	p.state.content.ForgetRetired(func(key rrset.Key, isShared bool) bool {
		if isShared {
			return isGone(synced.others, key)
		}
		return isGone(synced.line, key)
	}, event.Serial, p.now())
	if p.state.content.SettleForeign(mirrorsOf(synced.line)) {
		p.zones.Enqueue(p.key())
	}
	return true, false
}

// releaseTimeout is how long the deletion of an object waits for secondaries that hold its data and do not follow.
const releaseTimeout = 30 * time.Second

// release adds the objects that have no data in the zone any more. One that is deleted waits for the secondaries, so that it is
// known until then which data was its own.
func (p zonePass) release(event *statuswriter.SyncCompleted) {
	zone := p.state.content
	zone.ForgetLeftovers(func(serial uint32) bool {
		for i, out := range event.Servers {
			if p.hosts[i].Restores() && mayHoldOlder(out, serial) {
				return false
			}
		}
		return true
	})
	since := p.now().Add(-releaseTimeout)
	isStuck := func(key rrset.Key) bool { _, stuck := event.Unprogrammed[key]; return stuck }
	mayBeLeft := func(key rrset.Key) bool { return isStuck(key) || zone.IsLeftoverSince(key, since) }
	isDeleted := func(o source.Object) bool { return !o.GetDeletionTimestamp().IsZero() }
	isAlive := func(o source.Object) bool { return !isDeleted(o) }
	event.Released = append(zone.TakeReleasedIf(isDeleted, mayBeLeft), zone.TakeReleasedIf(isAlive, isStuck)...)
}

// mayHoldOlder reports whether a server might hold an older version than that of a serial.
func mayHoldOlder(s statuswriter.ServerOutcome, serial uint32) bool {
	isEmpty := s.Err == nil && s.Serial == 0
	return !s.Current && !isEmpty && (s.Serial == 0 || rrset.SerialLess(s.Serial, serial))
}

// addFailure adds why some of all primaries could not be brought along, the error first that asks for a person.
func (p zonePass) addFailure(failed []*primary, all int, event *statuswriter.SyncCompleted) {
	worst := failed[0]
	for _, q := range failed {
		if isTerminal(q.err) {
			q.known.RefuseZone(q.err, p.now())
			if !isTerminal(worst.err) {
				worst = q
			}
		}
	}
	event.Problem = status.PrimariesFailed(len(failed), all, worst.server.Pod, worst.err, worst.host.Remedy(worst.err))
	event.Failure = failureOf(worst.err, p.now().Sub(p.state.failingSince[worst.host.ID()]), event.Problem.Message)
}

// corrected returns the RRsets that somebody else changed and that are as desired now, with the values that somebody else had added.
func (s *primarySync) corrected(isStuck func(rrset.Key) bool) map[rrset.Key][]string {
	corrected := map[rrset.Key][]string{}
	for _, q := range s.primaries {
		for key, added := range q.drifted {
			if !isStuck(key) {
				corrected[key] = append(corrected[key], added...)
			}
		}
	}
	return corrected
}

// addPrimary adds what one primary serves, and lacks.
func (p zonePass) addPrimary(q *primary, event *statuswriter.SyncCompleted) {
	if q.isOnLine() || p.countOnLine() == 0 {
		event.Serial = q.seen.Serial
	}
	p.addApex(event, q.host.Apex)
	event.Pending = max(event.Pending, q.lacking.Len())
	for key := range q.lacking.Keys() {
		event.Unprogrammed[key] = unprogrammed(q, key, event.Paused)
	}
	for _, c := range q.known.Contests(p.now()) {
		if event.Contested = append(event.Contested, contested(q, c)); !event.Paused && q.known.IsUnconfirmed(c.Key, p.now()) {
			event.Unprogrammed[c.Key] = status.False(status.Contested, contested(q, c))
		}
	}
	for _, c := range q.lacking.Conflicts {
		event.Unprogrammed[c.Want.Key] = status.InTheWayOf(q.server.Pod, c.Want.Key, c.Foreign)
	}
	if count, some := q.known.Foreign(); count > event.Foreign {
		event.Foreign, event.ForeignSample = count, some
	}
}

// addApex adds that NS records which objects declare at the apex do not go to a host that has its own, and explains why.
func (p zonePass) addApex(event *statuswriter.SyncCompleted, explain func(rdata string) string) {
	key := rrset.Key{Name: p.dnsName(), Type: dns.TypeNS}
	set, _ := p.state.content.Desired().RRsets.Get(key)
	isObject := func(by *source.Ref) bool { return by.Kind != p.state.content.Desired().Ref.Kind }
	for i, owners := range set.Owners {
		if slices.ContainsFunc(owners, isObject) {
			if why := explain(set.Rdata[i]); why != "" {
				event.Unprogrammed[key] = status.False(status.Unsupported, why)
			}
		}
	}
}

// addSigning adds how the zone is signed.
func (p zonePass) addSigning(primaries []*primary, event *statuswriter.SyncCompleted) {
	for _, q := range primaries {
		if q.err == nil && q.seen.Mirror != nil && q.isOnLine() {
			p.state.dnssec, p.state.dnssecKnown = p.signing.StatusOf(q.seen.Mirror), true
		}
	}
	event.DNSSEC, event.DNSSECKnown = p.state.dnssec, p.state.dnssecKnown
	event.Remark = p.signing.Remark(p.state.dnssec)
}

func mirrorsOf(primaries []*primary) (mirrors []*observe.Mirror) {
	for _, q := range primaries {
		mirrors = append(mirrors, q.seen.Mirror)
	}
	return mirrors
}

// isGone reports whether an RRset was seen to be on none of some primaries.
func isGone(primaries []*primary, key rrset.Key) bool {
	for _, q := range primaries {
		if q.seen.Mirror == nil || !q.host.Knows(key) {
			return false
		}
		if _, there := q.seen.Mirror.Get(key); there {
			return false
		}
	}
	return true
}

// addTouched completes the event with the objects whose status it concerns, beside those that changed, by comparison with
// the outcome before. It returns what the event says.
func addTouched(event *statuswriter.SyncCompleted, last lastOutcome) lastOutcome {
	next := lastOutcome{known: true, problem: event.Problem, unprogrammed: event.Unprogrammed, desired: event.Desired}
	event.All = event.All || !last.known || last.problem != event.Problem
	if event.Desired == nil || last.desired == nil {
		event.All = true
		return next
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
	event.Touched = slices.Collect(maps.Keys(touched))
	return next
}

// differingKeys returns the RRsets of which the verdicts do not say the same.
func differingKeys(a, b map[rrset.Key]status.Verdict) map[rrset.Key]struct{} {
	keys := map[rrset.Key]struct{}{}
	for key, verdict := range a {
		if b[key] != verdict {
			keys[key] = struct{}{}
		}
	}
	for key, verdict := range b {
		if a[key] != verdict {
			keys[key] = struct{}{}
		}
	}
	return keys
}

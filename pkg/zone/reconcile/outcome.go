package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/backend"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/content"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// conclude turns what the primaries and the providers that are no DNS servers hold now into the outcome of the pass, and remembers what the
// next one has to know of it.
func (p zonePass) conclude(declared statuswriter.SyncCompleted, synced syncedPrimaries, stored []backend.Outcome) statuswriter.SyncCompleted {
	event := p.addContent(declared, synced.all, stored)
	isStuck := func(key rrset.Key) bool { _, stuck := event.Unprogrammed[key]; return stuck }
	var failed []primary
	for _, q := range synced.all {
		if q.err == nil {
			q.known.ForgetRefusals(isStuck)
			continue
		}
		failed = append(failed, q)
		if isTerminal(q.err) {
			q.known.RefuseZone(q.err, p.now())
		}
	}
	line, _ := split(synced.all)
	if len(line) > 0 {
		p.serials.Expect(p.key(), event.Serial)
	}
	p.state.noteSigning(p.signing, line)
	event.DNSSEC, event.DNSSECKnown, event.Remark = p.state.dnssec, p.state.dnssecKnown, p.signing.Remark(p.state.dnssec)
	event.Removed = corrected(synced.all, isStuck)
	event.Drift = len(event.Removed)
	p.state.noteFailing(failed, p.now())
	if len(failed) > 0 {
		event.Problem, event.Failure = p.primaryProblem(failed, len(synced.all))
		event.Released, event.Held = p.holdMoves(failed, len(synced.all), isStuck)
	}
	if event.Problem.Holds() {
		p.noteSettled(synced.all, event.Serial)
	}
	return event
}

// addContent adds what is where the zone is written to: an RRset is programmed when every primary was asked and answered with it, and every
// provider that is no DNS server was read with it.
func (p zonePass) addContent(event statuswriter.SyncCompleted, primaries []primary, stored []backend.Outcome) statuswriter.SyncCompleted {
	event.Unprogrammed = map[rrset.Key]status.Verdict{}
	for _, q := range primaries {
		if event.Changes.Len() == 0 {
			event.Changes = q.applied
		}
		if event.Paused {
			event.Pending = max(event.Pending, p.pendingOn(q))
		}
		if q.err != nil {
			continue
		}
		if q.isOnLine() || p.countOnLine() == 0 {
			event.Serial = q.seen.Serial
		}
		contests := q.known.Contests(p.now())
		for _, c := range contests {
			event.Contested = append(event.Contested, contested(q, c))
		}
		maps.Copy(event.Unprogrammed, p.unprogrammedOn(q, contests, event.Paused))
		if count, some := q.known.Foreign(); count > event.Foreign {
			event.Foreign, event.ForeignSample = count, some
		}
	}
	for _, out := range stored {
		event.Backends = append(event.Backends, statuswriter.BackendOutcome{Provider: out.Name, Err: out.Err})
		maps.Copy(event.Unprogrammed, out.Unprogrammed)
		if event.Pending = max(event.Pending, out.Pending); event.Changes.Len() == 0 {
			event.Changes = out.Applied
		}
		if event.Foreign == 0 {
			event.Foreign, event.ForeignSample = out.Foreign, out.ForeignSample
		}
		if out.Err == nil {
			maps.Copy(event.Unprogrammed, p.apexOf(func(string) string { return fmt.Sprintf("DNSProvider %s: %s", out.Name, out.Apex) }))
			continue
		}
		why, failure := backendProblem(out)
		event.Problem, event.Failure = why, cmp.Or(failure, event.Failure)
	}
	return event
}

// noteSettled forgets what was ours once all primaries were seen without it, and what somebody else has put on one once all have it.
func (p zonePass) noteSettled(primaries []primary, serial uint32) {
	line, others := split(primaries)
	p.state.content.ForgetRetired(func(key rrset.Key, isShared bool) bool {
		if isShared {
			return isGone(others, key)
		}
		return isGone(line, key)
	}, serial, p.now())
	if p.state.content.SettleForeign(mirrorsOf(line)) {
		p.zones.Enqueue(p.key())
	}
}

// releaseTimeout is how long the deletion of an object waits for secondaries that hold its data and do not follow.
const releaseTimeout = 30 * time.Second

// release returns the objects that have no data in the zone any more. One that is deleted waits for the secondaries, so that it is
// known until then which data was its own.
func (p zonePass) release(servers []statuswriter.ServerOutcome, unprogrammed map[rrset.Key]status.Verdict) []source.Object {
	zone := p.state.content
	zone.ForgetLeftovers(func(serial uint32) bool {
		for i, out := range servers {
			if p.hosts[i].At().Restores && mayHoldOlder(out, serial) {
				return false
			}
		}
		return true
	})
	since := p.now().Add(-releaseTimeout)
	isStuck := func(key rrset.Key) bool { _, stuck := unprogrammed[key]; return stuck }
	mayBeLeft := func(key rrset.Key) bool { return isStuck(key) || zone.IsLeftoverSince(key, since) }
	isDeleted := func(o source.Object) bool { return !o.GetDeletionTimestamp().IsZero() }
	isAlive := func(o source.Object) bool { return !isDeleted(o) }
	return append(zone.TakeReleasedIf(isDeleted, mayBeLeft), zone.TakeReleasedIf(isAlive, isStuck)...)
}

// mayHoldOlder reports whether a server might hold an older version than that of a serial.
func mayHoldOlder(s statuswriter.ServerOutcome, serial uint32) bool {
	isEmpty := s.Err == nil && s.Serial == 0
	return !s.Current && !isEmpty && (s.Serial == 0 || rrset.SerialLess(s.Serial, serial))
}

// primaryProblem says why some of all primaries could not be brought along, the error first that asks for a person, and whether only a
// person can help.
func (p zonePass) primaryProblem(failed []primary, all int) (why, failure status.Verdict) {
	worst := failed[max(0, slices.IndexFunc(failed, func(q primary) bool { return isTerminal(q.err) }))]
	why = problem(status.PrimaryFailed, "%d of %d primaries cannot be programmed; %s: %v%s",
		len(failed), all, worst.at.Pod, worst.err, worst.host.Remedy(worst.err))
	return why, failureOf(worst.err, p.now().Sub(p.state.failingSince[worst.at.ID]), why.Message)
}

// corrected returns the RRsets that somebody else changed and that are as desired now, with the values that somebody else had added.
func corrected(primaries []primary, isStuck func(rrset.Key) bool) map[rrset.Key][]string {
	corrected := map[rrset.Key][]string{}
	for _, q := range primaries {
		for _, d := range q.drifted {
			if !isStuck(d.key) {
				corrected[d.key] = append(corrected[d.key], d.added...)
			}
		}
	}
	return corrected
}

// pendingOn counts the RRsets that a paused zone lacks on a primary.
func (p zonePass) pendingOn(q primary) int {
	switch {
	case errors.Is(q.err, errNotCreated):
		return p.state.content.Desired().Len()
	case q.err != nil:
		return 0
	}
	return q.lacking.Len()
}

// unprogrammedOn returns the verdicts about the RRsets that a primary does not serve as declared.
func (p zonePass) unprogrammedOn(q primary, contests []content.Contest, paused bool) map[rrset.Key]status.Verdict {
	verdicts := p.apexOf(q.host.Apex)
	for key := range q.lacking.Keys() {
		verdicts[key] = unprogrammed(q, key, paused)
	}
	for _, c := range contests {
		if !paused && q.known.IsUnconfirmed(c.Key, p.now()) {
			verdicts[c.Key] = status.False(status.Contested, contested(q, c))
		}
	}
	for _, c := range q.lacking.Conflicts {
		verdicts[c.Want.Key] = conflicting(q, c)
	}
	return verdicts
}

// apexOf returns the verdict about the NS records that objects declare at the apex, if a host has its own there, and explains why.
func (p zonePass) apexOf(explain func(rdata string) string) map[rrset.Key]status.Verdict {
	verdicts := map[rrset.Key]status.Verdict{}
	key := rrset.Key{Name: p.dnsName(), Type: dns.TypeNS}
	set, _ := p.state.content.Desired().RRsets.Get(key)
	isObject := func(by *source.Ref) bool { return by.Kind != p.state.content.Desired().Ref.Kind }
	for i, owners := range set.Owners {
		if slices.ContainsFunc(owners, isObject) {
			if why := explain(set.Rdata[i]); why != "" {
				verdicts[key] = status.False(status.Unsupported, why)
			}
		}
	}
	return verdicts
}

func mirrorsOf(primaries []primary) (mirrors []*observe.Mirror) {
	for _, q := range primaries {
		mirrors = append(mirrors, q.seen.Mirror)
	}
	return mirrors
}

// isGone reports whether an RRset was seen to be on none of some primaries.
func isGone(primaries []primary, key rrset.Key) bool {
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

// touchedSince returns the objects whose status an outcome concerns: those that changed, and those about which the last one said something
// else. all means every object.
func touchedSince(last lastOutcome, event statuswriter.SyncCompleted) (keys []source.ObjectKey, all bool) {
	all = event.All || !last.known || last.problem != event.Problem
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

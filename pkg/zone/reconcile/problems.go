package reconcile

import (
	"errors"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/content"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/primary"
)

// answerGrace is for how long a server may answer with an error, such as SERVFAIL or NOTAUTH, that passes by itself.
const answerGrace = 10 * time.Second

// failureOf returns the failure that a server's error is to the zone; the zero value if it may pass by itself, because it does
// not last. That the clocks differ passes when somebody sets one.
func failureOf(err error, lasts time.Duration, message string) status.Verdict {
	var missing *host.MissingZoneError
	if errors.As(err, &missing) && host.IsTerminal(err) {
		return status.False(status.ZoneNotFound, message)
	}
	var e *wire.Error
	if !errors.As(err, &e) || !host.IsTerminal(err) && e.TSIGError == 0 && (e.Rcode == dns.RcodeSuccess || lasts < answerGrace) {
		return status.Verdict{}
	}
	return status.False(e.Reason(), message)
}

// primaryProblem says why some of all primaries could not be brought along, the error first that asks for a person, and whether only a
// person can help.
func (p zonePass) primaryProblem(failed []primary.State, all int) (why, failure status.Verdict) {
	worst := failed[max(0, slices.IndexFunc(failed, func(q primary.State) bool { return host.IsTerminal(q.Err) }))]
	why = status.PrimariesFailed(len(failed), all, worst.At.Pod, worst.Err, worst.Host.Remedy(worst.Err))
	return why, failureOf(worst.Err, p.now().Sub(p.state.failingSince[worst.At.ID]), why.Message)
}

// unprogrammedOn returns the verdicts about the RRsets that a primary does not serve as declared.
func (p zonePass) unprogrammedOn(q primary.State, contests []content.Contest) map[rrset.Key]status.Verdict {
	verdicts := map[rrset.Key]status.Verdict{}
	for key := range q.Lacking.Keys() {
		verdicts[key] = unprogrammed(q, key, p.isPaused())
	}
	for _, c := range contests {
		if !p.isPaused() && q.Known.IsUnconfirmed(c.Key, p.now()) {
			verdicts[c.Key] = status.False(status.Contested, contested(q, c))
		}
	}
	for _, c := range q.Lacking.Conflicts {
		verdicts[c.Want.Key] = status.InTheWayOf(q.At.Pod, c.Want.Key, c.Foreign)
		if c.Why != "" {
			verdicts[c.Want.Key] = status.NotPublishable(q.At.Pod, c.Want.Key, c.Why)
		}
	}
	return verdicts
}

// apexOf returns the verdict about the NS records that objects declare at the apex of a host that has its own there: then explain says why.
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

// unprogrammed says why a primary does not serve an RRset as desired.
func unprogrammed(q primary.State, key rrset.Key, paused bool) status.Verdict {
	if paused {
		return status.OnlyWatched(q.At.Pod, key)
	}
	if err := q.Known.Refusal(key); err != nil {
		return status.RefusedBy(q.At.Pod, err)
	}
	if q.Overtaken {
		return status.ChangedByOthers(q.At.Pod, key)
	}
	return status.NotServed(q.At.Pod, key)
}

// contested says that somebody else overwrites an RRset again and again.
func contested(q primary.State, c content.Contest) string {
	return status.Contest{
		Server: q.At.Pod, Key: c.Key, Seen: c.Seen.Rdata, Declared: c.Declared.Rdata, Standing: c.Standing, Count: c.Count, First: c.First, Next: c.Next,
	}.Message()
}

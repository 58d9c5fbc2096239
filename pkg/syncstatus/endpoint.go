package syncstatus

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// EndpointStatus judges a DNSEndpoint, as it was when its zones were declared. in are all zones that take endpoints of it or hold data of
// it; unplaced are the indexes of its endpoints that no zone takes. now is the time of the request. Of a zone in another namespace it
// reveals no more than name and servers.
func EndpointStatus(e *v1alpha1.DNSEndpoint, in []*Evaluation, unplaced []int, now time.Time) *syncv1.SyncStatus {
	in = slices.SortedFunc(slices.Values(in), func(a, b *Evaluation) int {
		return cmp.Or(cmp.Compare(a.ZoneName(), b.ZoneName()), cmp.Compare(a.zone.Namespace, b.zone.Namespace))
	})
	out := subject.New(e, subject.EndpointKind.Kind)
	v := statusFacts{stalled: stalledCondition(e), stored: e.Status.Conditions, generation: e.Generation, at: now}
	var zones, remarks []string
	var expires time.Time
	for _, ev := range in {
		p := ev.partOf(e)
		v.access = v.access.or(ev.access)
		v.stalled = cmp.Or(v.stalled, ev.zoneFailure(e.Namespace))
		out.RRsets = mergeRRsets(out.RRsets, p.desiredRRsets())
		rows, waiting := p.serverRowsFor(e.Namespace)
		out.Chain = append(out.Chain, ev.chain(rows, p.keys)...)
		for _, gap := range ev.gaps {
			if !slices.Contains(v.gaps, gap) {
				v.gaps = append(v.gaps, gap)
			}
		}
		for i := range rows {
			rows[i].Zone = ev.shortName()
		}
		v.rows, v.waiting = append(v.rows, rows...), append(v.waiting, waiting...)
		if p.at.Before(v.at) {
			v.at = p.at
		}
		if at := p.cachesExpireAt(rows); at.After(expires) {
			expires = at
		}
		zones = append(zones, ev.shortName())
		if remark := ev.waitRemark(); remark != "" {
			remarks = append(remarks, ev.shortName()+": "+remark)
		}
	}
	v.remark = strings.Join(remarks, "; ")
	v.accepted = acceptedEndpoints(e, in, unplaced, now)
	v.nothing = len(v.rows) == 0 && (len(e.Spec.Endpoints) == 0 || e.DeletionTimestamp != nil)
	out.Zone = strings.Join(slices.Compact(zones), ",")
	out.Servers, out.Summary = v.rows, summarizeServers(v.rows)
	out.Status = v.buildStatus()
	out.ObservedAt = observationTime(v.at, v.rows)
	out.CachesExpireAt = optionalTime(expires)
	return out
}

// mergeRRsets adds RRsets to those of other zones. A name can be in two zones: where it is, and where it was.
func mergeRRsets(all, more []syncv1.RRset) []syncv1.RRset {
	for _, s := range more {
		i := slices.IndexFunc(all, func(o syncv1.RRset) bool { return o.Name == s.Name && o.Type == s.Type })
		switch {
		case i < 0:
			all = append(all, s)
		case len(all[i].Rdata) == 0:
			all[i] = s
		}
	}
	return all
}

// acceptedEndpoints is the Accepted verdict over all zones, as the controller writes it into the object.
func acceptedEndpoints(e *v1alpha1.DNSEndpoint, in []*Evaluation, unplaced []int, now time.Time) status.Verdict {
	if e.DeletionTimestamp != nil {
		return status.True("Deleting", "the endpoints are being deleted: their data is being removed from the servers")
	}
	if v, found := unsupportedBy(e); found {
		return v
	}
	facts := status.EndpointFacts{Generation: e.Generation}
	var notes []string
	for _, ev := range in {
		decls := ev.endpointsOf(e)
		if len(decls.Endpoints) == 0 && !decls.taken {
			continue // It only holds data that is to be removed.
		}
		if ev.problem != nil {
			return status.False(ev.problem.Reason, "zone "+ev.shortName()+": "+ev.problemFor(e.Namespace))
		}
		facts.Zones = append(facts.Zones, decls.EndpointZoneFacts)
		notes = append(notes, decls.notes...)
	}
	for _, i := range unplaced {
		if endpoint := e.Spec.Endpoints[i]; endpoint != nil {
			facts.Unplaced = append(facts.Unplaced, status.EndpointOutcome{Index: i, RRset: endpoint.DNSName + "/" + endpoint.RecordType})
		}
	}
	c := meta.FindStatusCondition(status.Endpoint(v1alpha1.DNSEndpointStatus{}, facts, now).Conditions, status.Accepted)
	v := status.Verdict{Status: c.Status, Reason: c.Reason, Message: c.Message}
	if v.Holds() && len(notes) > 0 {
		v.Message += "; " + strings.Join(notes, "; ")
	}
	return v
}

// endpointZoneFacts is what is known from a zone about a DNSEndpoint.
type endpointZoneFacts struct {
	status.EndpointZoneFacts
	// taken is true if the zone takes endpoints of the object, also if it could not evaluate them.
	taken bool
	notes []string
}

func (ev *Evaluation) endpointsOf(e *v1alpha1.DNSEndpoint) endpointZoneFacts {
	f := endpointZoneFacts{EndpointZoneFacts: status.EndpointZoneFacts{
		Namespace: ev.zone.Namespace, Name: ev.zone.Name, ZoneName: ev.shortName(), Programmed: status.True(status.Accepted, ""),
	}}
	if ev.desired == nil {
		f.taken = slices.ContainsFunc(e.Spec.Endpoints, func(endpoint *v1alpha1.Endpoint) bool {
			return endpoint != nil && rrset.IsSubdomain(absoluteName(endpoint.DNSName), ev.ZoneName())
		})
		return f
	}
	for id, d := range ev.desired.Of(source.KeyOf(e)) {
		if d.Ref.UID != e.UID {
			continue
		}
		outcome := status.EndpointOutcome{
			Index: id.Index, RRset: d.Key.Name + "/" + dns.Type(d.Key.Type).String(),
			Accepted: status.True(status.Accepted, ""), Programmed: status.True(status.Programmed, ""),
		}
		if d.Key.Type == 0 && id.Index < len(e.Spec.Endpoints) {
			outcome.RRset = e.Spec.Endpoints[id.Index].DNSName + "/" + e.Spec.Endpoints[id.Index].RecordType
		}
		if !d.Accepted {
			outcome.Accepted = status.False(d.Reason, d.Message)
		}
		if d.Note != "" {
			f.notes = append(f.notes, d.Note)
		}
		f.Endpoints = append(f.Endpoints, outcome)
	}
	f.Judged = len(f.Endpoints) > 0
	return f
}

// problemFor is what is wrong with the zone for readers of a namespace: of a zone elsewhere they may not know more than that something
// is.
func (ev *Evaluation) problemFor(namespace string) string {
	if ev.zone.Namespace == namespace {
		return ev.problem.Message
	}
	return hiddenProblem
}

// hiddenProblem stands for what is wrong with a zone of another namespace.
const hiddenProblem = "it is not served as declared; its owner can see why"

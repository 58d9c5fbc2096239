package syncstatus

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// RecordStatus judges a record that belongs to the zone, as it was when the zone was declared. Of a zone in another namespace it
// reveals no more than name and servers.
func (ev *Evaluation) RecordStatus(r v1beta1.Record) *syncv1.SyncStatus {
	out := subject.New(r, v1beta1.KindOf(r).Kind)
	out.Zone = ev.shortName()
	v := statusFacts{
		accepted: ev.accepted(r), stalled: cmp.Or(stalledCondition(r), ev.zoneFailure(r.GetNamespace())), stored: conditionsOf(r),
		generation: r.GetGeneration(), at: ev.at, remark: ev.waitRemark(), access: ev.access,
	}
	p := ev.partOf(r)
	out.RRsets = p.desiredRRsets()
	v.nothing = len(p.keys) == 0 && r.GetDeletionTimestamp() != nil
	v.rows, v.waiting = p.serverRowsFor(r.GetNamespace())
	out.Servers, out.Summary = v.rows, summarizeServers(v.rows)
	v.gaps, out.Chain = ev.gaps, ev.chain(v.rows, p.keys)
	out.Status = v.buildStatus()
	out.ObservedAt = observationTime(ev.at, v.rows)
	out.CachesExpireAt = optionalTime(p.cachesExpireAt(v.rows))
	return out
}

// shortName is the zone's name without the final dot.
func (ev *Evaluation) shortName() string { return strings.TrimSuffix(ev.ZoneName(), ".") }

// UnselectedStatus is for a record that no zone has. now is the time of the request.
func UnselectedStatus(r v1beta1.Record, now time.Time) *syncv1.SyncStatus {
	out := subject.New(r, v1beta1.KindOf(r).Kind)
	v := statusFacts{
		accepted:   status.False(status.NotSelected, "no DNSZone in this namespace selects the record: compare its labels with spec.recordsFrom of the zone"+status.ElsewhereRemark),
		generation: r.GetGeneration(), at: now, stored: conditionsOf(r),
	}
	if r.GetDeletionTimestamp() != nil {
		v.accepted = status.True("Deleting", "the record is being deleted, and no zone holds data of it")
		v.nothing = true
	}
	out.Status = v.buildStatus()
	return out
}

func (ev *Evaluation) accepted(r v1beta1.Record) status.Verdict {
	decls := ev.declarationsOf(r)
	switch {
	case r.GetDeletionTimestamp() != nil:
		return status.True("Deleting", "the record is being deleted: its data is being removed from the servers")
	case ev.problem != nil:
		return status.False(ev.problem.Reason, fmt.Sprintf("zone %s: %s", ev.zone.Name, ev.problemFor(r.GetNamespace())))
	case len(decls) == 0:
		return status.Unknown(status.Pending, "the record is not part of the zone yet")
	case !decls[0].Accepted:
		return status.False(decls[0].Reason, decls[0].Message)
	}
	if v, found := unsupportedBy(r); found {
		return v
	}
	return status.True("Accepted", cmp.Or(decls[0].Note, "part of zone "+ev.zone.Name))
}

// zonePart is what an object has in one zone.
type zonePart struct {
	*Evaluation
	keys []rrset.Key
}

func (ev *Evaluation) partOf(o source.Object) zonePart {
	own, left := ev.keysOf(o, false)
	return zonePart{ev, append(own, left...)}
}

func (p zonePart) desiredRRsets() []syncv1.RRset {
	if len(p.keys) == 0 {
		return nil
	}
	all := make([]syncv1.RRset, 0, len(p.keys))
	for _, k := range p.keys {
		all = append(all, renderRRset(k, p.desiredAt(k)))
	}
	return all
}

// serverRows are the rows of the zone's servers; none if the object has no RRsets.
func (p zonePart) serverRows() (rows []syncv1.ServerStatus, waiting []bool) {
	if len(p.keys) == 0 {
		return nil, nil
	}
	rows, waiting = make([]syncv1.ServerStatus, 0, len(p.servers)), make([]bool, 0, len(p.servers))
	for i := range p.servers {
		rows, waiting = append(rows, p.compareRRsets(p.servers[i], p.keys)), append(waiting, p.servers[i].waiting)
	}
	return rows, waiting
}

// serverRowsFor are serverRows for readers of a namespace: they name that of servers elsewhere.
func (p zonePart) serverRowsFor(namespace string) (rows []syncv1.ServerStatus, waiting []bool) {
	rows, waiting = p.serverRows()
	for i := range rows {
		rows[i].Namespace = ""
		if n := p.servers[i].namespace; n != namespace {
			rows[i].Namespace = n
		}
	}
	return rows, waiting
}

// cachesExpireAt is when resolvers must have dropped what servers answered before they were in sync: what they were seen to answer
// earlier and, for a server that is not in sync by its row, what it answers now. It is zero if neither is known.
func (p zonePart) cachesExpireAt(rows []syncv1.ServerStatus) time.Time {
	var until time.Time
	for i := range rows {
		e := &p.servers[i]
		for _, k := range p.keys {
			if at := p.past.cachedUntil(e.id.peer, k); at.After(until) {
				until = at
			}
			if e.mirror == nil || rows[i].State == syncv1.StateInSync {
				continue
			}
			if _, _, _, known := e.contentAt(p.DesiredState, k); !known {
				continue
			}
			if have, _ := e.have(p.DesiredState, k); sameData(p.desiredAt(k), have) {
				continue
			}
			if at := p.at.Add(e.mirror.CacheDuration(k)); at.After(until) {
				until = at
			}
		}
	}
	if whole := until.Truncate(time.Second); !whole.Equal(until) {
		return whole.Add(time.Second) // Never too early.
	}
	return until
}

func optionalTime(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return new(metav1.NewTime(at))
}

func observationTime(at time.Time, rows []syncv1.ServerStatus) *metav1.MicroTime {
	answered := false
	for i := range rows {
		if rows[i].ObservedAt != nil {
			at, answered = status.Earlier(at, rows[i].ObservedAt.Time), true
		}
	}
	if !answered {
		return nil
	}
	return new(metav1.NewMicroTime(at))
}

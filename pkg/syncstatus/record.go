package syncstatus

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	sync "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// Record gives the SyncStatus of a record that belongs to the zone, as it was when the zone was declared.
func (j *Judgement) Record(r v1beta1.Record) *sync.SyncStatus {
	out := about(r, objectVersion, v1beta1.KindOf(r).Kind)
	out.Zone = j.shortName()
	v := verdict{
		accepted: j.accepted(r), stalled: stalled(r), stored: conditionsOf(r),
		generation: r.GetGeneration(), at: j.at, remark: j.paused(),
	}
	p := j.partOf(r)
	out.RRsets = p.rrsets()
	v.rows, v.waiting = p.rows()
	out.Servers, out.Summary = v.rows, summarize(v.rows)
	out.Status = v.status()
	out.ObservedAt = observedAt(j.at, v.rows)
	out.CachesExpireAt = expiry(p.cachesExpireAt())
	return out
}

// shortName is the zone's name as people write it.
func (j *Judgement) shortName() string { return strings.TrimSuffix(j.ZoneName(), ".") }

// Unselected gives the SyncStatus of a record that no zone has. now is the time of asking.
func Unselected(r v1beta1.Record, now time.Time) *sync.SyncStatus {
	out := about(r, objectVersion, v1beta1.KindOf(r).Kind)
	v := verdict{
		accepted:   status.No(status.NotSelected, "no DNSZone in this namespace selects the record: compare its labels with spec.recordsFrom of the zone"),
		generation: r.GetGeneration(), at: now, stored: conditionsOf(r),
	}
	if r.GetDeletionTimestamp() != nil {
		v.accepted = status.Yes("Deleting", "the record is being deleted, and no zone holds data of it")
		v.nothing = true
	}
	out.Status = v.status()
	return out
}

func (j *Judgement) accepted(r v1beta1.Record) status.Verdict {
	decls := j.declarations(r)
	switch {
	case r.GetDeletionTimestamp() != nil:
		return status.Yes("Deleting", "the record is being deleted: its data has to leave the servers")
	case j.problem != nil:
		return status.No(j.problem.Reason, fmt.Sprintf("zone %s: %s", j.zone.Name, j.problem.Message))
	case len(decls) == 0:
		return status.Maybe(status.Pending, "the record is not part of the zone yet")
	case !decls[0].Accepted:
		return status.No(decls[0].Reason, decls[0].Message)
	case decls[0].Note != "":
		return status.Yes("Accepted", decls[0].Note)
	}
	return status.Yes("Accepted", "part of zone "+j.zone.Name)
}

// part is what an object has to do with one zone.
type part struct {
	*Judgement
	keys []rrset.Key
}

func (j *Judgement) partOf(o source.Object) part {
	own, left := j.keysOf(o, false)
	return part{j, append(own, left...)}
}

func (p part) rrsets() []sync.RRset {
	if len(p.keys) == 0 {
		return nil
	}
	all := make([]sync.RRset, 0, len(p.keys))
	for _, k := range p.keys {
		all = append(all, render(k, p.want(k)))
	}
	return all
}

// rows are those of the zone's servers; none when there is nothing to judge them by.
func (p part) rows() (rows []sync.ServerStatus, waiting []bool) {
	if len(p.keys) == 0 {
		return nil, nil
	}
	rows, waiting = make([]sync.ServerStatus, 0, len(p.servers)), make([]bool, 0, len(p.servers))
	for _, e := range p.servers {
		rows, waiting = append(rows, p.compare(e, p.keys)), append(waiting, e.waiting)
	}
	return rows, waiting
}

func expiry(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return new(metav1.NewTime(at))
}

// The API versions of what is told, and of what it is told about.
var ownVersion, objectVersion = sync.SchemeGroupVersion.String(), v1beta1.GroupVersion.String()

// about starts the SyncStatus of an object.
func about(o metav1.Object, apiVersion, kind string) *sync.SyncStatus {
	return &sync.SyncStatus{
		TypeMeta: metav1.TypeMeta{APIVersion: ownVersion, Kind: "SyncStatus"},
		ObjectMeta: metav1.ObjectMeta{
			Name: Name(kind, o.GetName()), Namespace: o.GetNamespace(), UID: o.GetUID(), Labels: o.GetLabels(),
			Generation: o.GetGeneration(), CreationTimestamp: o.GetCreationTimestamp(),
		},
		ObjectRef: sync.ObjectReference{
			APIVersion: apiVersion, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(),
			UID: o.GetUID(), Generation: o.GetGeneration(),
		},
	}
}

func observedAt(at time.Time, rows []sync.ServerStatus) *metav1.MicroTime {
	for i := range rows {
		if rows[i].ObservedAt != nil {
			return new(metav1.NewMicroTime(at))
		}
	}
	return nil
}

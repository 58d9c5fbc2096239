package syncstatus

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	sync "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// Record gives the SyncStatus of a record that belongs to the zone.
func (j *Judgement) Record(r v1beta1.Record) *sync.SyncStatus {
	out := about(r, v1beta1.KindOf(r).Kind)
	out.Zone = strings.TrimSuffix(j.ZoneName(), ".")
	decl := j.records[r.GetUID()]
	if decl == nil {
		decl = &declaration{object: r}
	}
	v := verdict{
		accepted: j.accepted(decl), stalled: stalled(r), stored: r.GetRecordStatus().Conditions,
		generation: r.GetGeneration(), at: j.at,
	}
	for _, k := range decl.keys {
		out.RRsets = append(out.RRsets, render(k, j.want(k)))
	}
	for _, e := range j.servers {
		row := j.compare(e, decl.keys)
		v.rows, v.waiting = append(v.rows, row), append(v.waiting, e.waiting)
	}
	if len(decl.keys) == 0 {
		v.rows, v.waiting = nil, nil
	}
	out.Servers, out.Summary = v.rows, summarize(v.rows)
	out.Status = v.status()
	out.ObservedAt = observedAt(j, v.rows)
	out.CachesExpireAt = j.cachesExpireAt(decl.keys)
	return out
}

// Unselected gives the SyncStatus of a record that no zone selects. now is the time of asking.
func Unselected(r v1beta1.Record, now time.Time) *sync.SyncStatus {
	out := about(r, v1beta1.KindOf(r).Kind)
	v := verdict{
		accepted:   status.No(status.NotSelected, "no DNSZone in this namespace selects the record: compare its labels with spec.recordsFrom of the zone"),
		generation: r.GetGeneration(), at: now, stored: r.GetRecordStatus().Conditions,
	}
	out.Status = v.status()
	return out
}

func (j *Judgement) accepted(decl *declaration) status.Verdict {
	switch {
	case decl.object.GetDeletionTimestamp() != nil:
		return status.Yes("Deleting", "the record is being deleted: its data has to leave the servers")
	case j.problem != nil:
		return status.No(j.problem.Reason, fmt.Sprintf("zone %s: %s", j.zone.Name, j.problem.Message))
	case decl.source == nil:
		return status.Maybe(status.Pending, "the record is not part of the zone yet")
	case !decl.source.Accepted:
		return status.No(decl.source.Reason, decl.source.Message)
	case decl.source.Note != "":
		return status.Yes("Accepted", decl.source.Note)
	}
	return status.Yes("Accepted", "part of zone "+j.zone.Name)
}

// cachesExpireAt is when resolvers that asked a server just before this round must have dropped what it answered
// then, for the servers whose answer is not as declared: its TTL, or the zone's negative TTL (RFC 2308 section 5)
// when there was no data. Nil when all data is as declared.
func (j *Judgement) cachesExpireAt(keys []rrset.Key) *metav1.Time {
	var ttl uint32
	stale := false
	for _, e := range j.servers {
		if e.mirror == nil {
			continue
		}
		for _, k := range keys {
			have, _ := e.mirror.Get(k)
			if same(j.want(k), have) {
				continue
			}
			stale = true
			if len(have.Rdata) > 0 {
				ttl = max(ttl, have.TTL)
			} else {
				ttl = max(ttl, min(e.mirror.SOA.Minimum, e.mirror.SOA.TTL))
			}
		}
	}
	if !stale {
		return nil
	}
	return new(metav1.NewTime(j.at.Add(time.Duration(ttl) * time.Second).Truncate(time.Second)))
}

// about starts the SyncStatus of an object.
func about(o metav1.Object, kind string) *sync.SyncStatus {
	return &sync.SyncStatus{
		TypeMeta: metav1.TypeMeta{APIVersion: sync.SchemeGroupVersion.String(), Kind: "SyncStatus"},
		ObjectMeta: metav1.ObjectMeta{
			Name: Name(kind, o.GetName()), Namespace: o.GetNamespace(), UID: o.GetUID(), Labels: o.GetLabels(),
			Generation: o.GetGeneration(), CreationTimestamp: o.GetCreationTimestamp(),
		},
		ObjectRef: sync.ObjectReference{
			APIVersion: v1beta1.GroupVersion.String(), Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(),
			UID: o.GetUID(), Generation: o.GetGeneration(),
		},
	}
}

func observedAt(j *Judgement, rows []sync.ServerStatus) *metav1.MicroTime {
	for _, r := range rows {
		if r.ObservedAt != nil {
			return new(metav1.NewMicroTime(j.at))
		}
	}
	return nil
}

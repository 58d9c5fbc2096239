package status

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// MaxZoneRecords bounds status.records of a zone: an object in etcd must stay below 1.5 MiB, which some 10,000
// references would fill. The count is always of all.
const MaxZoneRecords = 1000

// ZoneFacts is what one pass found out about a zone.
type ZoneFacts struct {
	Generation int64
	// Serial that the primaries answered with; 0 leaves the last known one.
	Serial uint32
	// Records are the selected records that are programmed, in a stable order; Unready counts the others.
	Records []v1beta1.RecordReference
	Unready int
	// Instances of the zone, in a stable order, without times.
	Instances []v1beta1.ZoneInstance
	// Problem is why nothing of the zone is programmed; True when there is no such problem.
	Problem Verdict
	// Servers and Current count the zone's servers and those that hold the zone's serial.
	Servers, Current int
}

// Zone is the status of a zone. Times are those of the last change, so that an unchanged zone keeps its status.
func Zone(prev v1beta1.DNSZoneStatus, f ZoneFacts, now time.Time) v1beta1.DNSZoneStatus {
	next := *prev.DeepCopy()
	next.ObservedGeneration = f.Generation
	if f.Serial != 0 {
		serial := int64(f.Serial)
		next.Serial = &serial
	}
	// While a primary is away nothing is known anew about records: the list stays as it was when it last was.
	if f.Problem.Reason != PrimaryFailed {
		next.RecordsCount = int32(len(f.Records))
		next.Records = f.Records[:min(len(f.Records), MaxZoneRecords)]
	}
	next.Bind9InstancesCount = int32(len(f.Instances))
	next.Bind9Instances = f.Instances
	keepTimes(next.Bind9Instances, prev.Bind9Instances, now)
	ready, progressing, degraded := zoneVerdicts(f)
	Set(&next.Conditions, Ready, ready, f.Generation, now)
	Set(&next.Conditions, Progressing, progressing, f.Generation, now)
	Set(&next.Conditions, Degraded, degraded, f.Generation, now)
	return next
}

// zoneVerdicts sums a pass up. A zone is ready once its primaries hold what is declared; secondaries that are still on
// their way make it progressing, records that cannot be programmed make it degraded.
func zoneVerdicts(f ZoneFacts) (ready, progressing, degraded Verdict) {
	served := fmt.Sprintf("%d of %d servers hold serial %d, %d of %d records are programmed",
		f.Current, f.Servers, f.Serial, len(f.Records), len(f.Records)+f.Unready)
	switch {
	case !f.Problem.Holds():
		return f.Problem, No(f.Problem.Reason, f.Problem.Message), Yes(f.Problem.Reason, f.Problem.Message)
	case f.Unready > 0:
		return No(PartialReconciliation, served), No(PartialReconciliation, served), Yes(PartialReconciliation, served)
	case f.Current < f.Servers:
		return Yes(ReconcileSucceeded, served), Yes(ReasonProgressing, served), Yes(ReconcileDegraded, served)
	default:
		return Yes(ReconcileSucceeded, served), No(ReconcileSucceeded, served), No(ReconcileSucceeded, served)
	}
}

// keepTimes gives every entry the time at which its status last changed.
func keepTimes(next, prev []v1beta1.ZoneInstance, now time.Time) {
	type key struct{ namespace, name string }
	old := make(map[key]v1beta1.ZoneInstance, len(prev))
	for _, i := range prev {
		old[key{i.Namespace, i.Name}] = i
	}
	at := metav1.NewTime(now.Truncate(time.Second))
	for i := range next {
		p, known := old[key{next[i].Namespace, next[i].Name}]
		if known && p.Status == next[i].Status && p.LastReconciledAt != nil {
			next[i].LastReconciledAt = p.LastReconciledAt
		} else {
			next[i].LastReconciledAt = &at
		}
	}
}

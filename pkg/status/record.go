package status

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// Verdict is one condition before it is written: what holds, and why.
type Verdict struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

// Holds is true when the verdict's status is True.
func (v Verdict) Holds() bool { return v.Status == metav1.ConditionTrue }

// Yes, No and Maybe make verdicts of the three possible statuses.
func Yes(reason, message string) Verdict { return Verdict{metav1.ConditionTrue, reason, message} }

// No is a verdict that something does not hold.
func No(reason, message string) Verdict { return Verdict{metav1.ConditionFalse, reason, message} }

// Maybe is a verdict that nobody can tell yet.
func Maybe(reason, message string) Verdict { return Verdict{metav1.ConditionUnknown, reason, message} }

// RecordFacts is what one pass over a zone found out about one record.
type RecordFacts struct {
	// Zone that selects the record.
	Zone *v1beta1.DNSZone
	// Generation of the record that was judged.
	Generation int64
	// Owner is the record's owner name in DNS without the final dot, Hash what source.Hash says of its data, and
	// Addresses its address rdata for the printer column.
	Owner, Hash, Addresses string
	// Accepted and Programmed are the two halves of Ready.
	Accepted, Programmed Verdict
	// ReadyReason is why the record is not ready, when it is not.
	ReadyReason string
	// Absent is true when no primary holds anything of a record that is not accepted.
	Absent bool
}

// Record is the status of a selected record. What the zone's servers hold is told by publishedName, recordHash and
// lastUpdated, so these change only once the data is programmed; until then they go on describing the old data. Where
// nothing of it is served any more, because it lost a conflict for one, there is no name and no hash.
func Record(prev v1beta1.RecordStatus, f RecordFacts, now time.Time) v1beta1.RecordStatus {
	next := *prev.DeepCopy()
	next.ObservedGeneration = f.Generation
	next.Zone = f.Zone.Spec.ZoneName
	if f.Addresses != "" {
		next.Addresses = f.Addresses
	}
	programmed := f.Programmed.Holds()
	ref := &v1beta1.ZoneReference{
		APIVersion: v1beta1.GroupVersion.String(), Kind: "DNSZone",
		Namespace: f.Zone.Namespace, Name: f.Zone.Name, ZoneName: f.Zone.Spec.ZoneName,
	}
	if prev.ZoneRef != nil && prev.ZoneRef.Name == ref.Name {
		ref.LastReconciledAt = prev.ZoneRef.LastReconciledAt
	}
	if programmed && (prev.RecordHash != f.Hash || prev.PublishedName != f.Owner || prev.Zone != next.Zone) {
		at := metav1.NewTime(now.Truncate(time.Second))
		next.RecordHash, next.PublishedName, next.LastUpdated = f.Hash, f.Owner, &at
		ref.LastReconciledAt = &at
	}
	if f.Absent {
		next.PublishedName, next.RecordHash = "", ""
	}
	next.ZoneRef = ref
	ready := Yes(ReconcileSucceeded, f.Programmed.Message)
	switch {
	case !f.Accepted.Holds():
		ready = No(f.ReadyReason, f.Accepted.Message)
	case !programmed:
		ready = No(f.ReadyReason, f.Programmed.Message)
	}
	Set(&next.Conditions, Ready, ready, f.Generation, now)
	Set(&next.Conditions, Accepted, f.Accepted, f.Generation, now)
	Set(&next.Conditions, Programmed, f.Programmed, f.Generation, now)
	return next
}

// Unselected is the status of a record that no zone selects: nothing of it is in DNS.
func Unselected(prev v1beta1.RecordStatus, generation int64, message string, now time.Time) v1beta1.RecordStatus {
	next := v1beta1.RecordStatus{
		ObservedGeneration: generation,
		LastUpdated:        prev.LastUpdated,
		Addresses:          prev.Addresses,
		Conditions:         prev.DeepCopy().Conditions,
	}
	meta.RemoveStatusCondition(&next.Conditions, Programmed)
	meta.RemoveStatusCondition(&next.Conditions, Accepted)
	Set(&next.Conditions, Ready, No(NotSelected, message), generation, now)
	return next
}

// Set writes one condition; its transition time moves only when its status does.
func Set(conditions *[]metav1.Condition, kind string, v Verdict, generation int64, now time.Time) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: v.Status, Reason: v.Reason, Message: truncate(v.Message),
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	})
}

// truncate keeps a message within the 32768 bytes that metav1.Condition allows, with room for the reader's patience.
func truncate(message string) string {
	const most = 1024
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most-3], "") + "..."
}

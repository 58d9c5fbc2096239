package status

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Verdict is the status, reason and message of a condition.
type Verdict struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

// Holds is false for Unknown as well as for False.
func (v Verdict) Holds() bool { return v.Status == metav1.ConditionTrue }

// True makes a verdict that something holds.
func True(reason, message string) Verdict { return Verdict{metav1.ConditionTrue, reason, message} }

// False makes a verdict that something does not hold.
func False(reason, message string) Verdict { return Verdict{metav1.ConditionFalse, reason, message} }

// Unknown makes a verdict that it is unknown whether something holds.
func Unknown(reason, message string) Verdict {
	return Verdict{metav1.ConditionUnknown, reason, message}
}

// RecordFacts is what one pass over a zone found about one record.
type RecordFacts struct {
	// Zone that selects the record.
	Zone *v1beta1.DNSZone
	// Generation of the record that was evaluated.
	Generation int64
	// Owner is the record's owner name in DNS without the final dot, Hash the source.Hash of its data, and Addresses its
	// address rdata for the printer column.
	Owner, Hash, Addresses string
	// Accepted and Programmed are the two halves of Ready.
	Accepted, Programmed Verdict
	// ReadyReason is why the record is not ready, if it is not.
	ReadyReason string
	// Absent is true if no primary holds what the status describes of a record that is not programmed.
	Absent bool
}

// Record computes the status of a selected record. publishedName, recordHash and lastUpdated describe what the zone's servers hold: they
// change only once the data is programmed, and until then describe the old data. If none of it is served any more, for example after a
// lost conflict, name and hash are empty.
func Record(prev v1beta1.RecordStatus, f RecordFacts, now time.Time) v1beta1.RecordStatus {
	next := *prev.DeepCopy()
	dropClaims(&next.Conditions)
	next.ObservedGeneration = f.Generation
	next.Zone = f.Zone.Spec.ZoneName
	if f.Addresses != "" || f.Accepted.Holds() {
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
	switch {
	case programmed && (prev.RecordHash != f.Hash || prev.PublishedName != f.Owner || prev.Zone != next.Zone):
		at := wholeSeconds(now)
		next.RecordHash, next.PublishedName, next.LastUpdated = f.Hash, f.Owner, at
		ref.LastReconciledAt = at
	case !programmed && f.Absent:
		next.PublishedName, next.RecordHash = "", ""
	}
	next.ZoneRef = ref
	ready := True(ReconcileSucceeded, f.Programmed.Message)
	switch {
	case !f.Accepted.Holds():
		ready = False(f.ReadyReason, f.Accepted.Message)
	case !programmed:
		ready = False(f.ReadyReason, f.Programmed.Message)
	}
	Set(&next.Conditions, Ready, ready, f.Generation, now)
	Set(&next.Conditions, Accepted, f.Accepted, f.Generation, now)
	Set(&next.Conditions, Programmed, f.Programmed, f.Generation, now)
	setStalled(&next.Conditions, f.Accepted.Status == metav1.ConditionFalse, f.Accepted, f.Generation, now)
	return next
}

// PartOf is about a declaration that is part of its zone; a note may say how.
func PartOf(zone, note string) Verdict {
	if note != "" {
		note = "; " + note
	}
	return True(Accepted, "part of zone "+zone+note)
}

// AnsweredByAll is about an RRset that every primary was seen to have.
func AnsweredByAll(zone string, key rrset.Key) Verdict {
	return True(Programmed, fmt.Sprintf("every primary of zone %s answers with %s", zone, key))
}

// NoZoneSelects is about a record that no zone selects.
func NoZoneSelects(record metav1.Object) Verdict {
	return False(NotSelected, "no DNSZone of namespace "+record.GetNamespace()+" selects this record's labels"+ElsewhereRemark)
}

// AboutToBeTaken is about a record that a zone has let go of, and that another one takes.
func AboutToBeTaken(zone string) Verdict {
	return False(NotSelected, "DNSZone "+zone+" is about to take this record")
}

// MovesLater is about a record that another zone is to take, and that a server of its former zone may still serve.
func MovesLater(to, until, server, from string, err error) string {
	return fmt.Sprintf("is about to move to DNSZone %s, which waits until %s: %s of zone %s may still serve it under its former name: %v", to, until, server, from, err)
}

// Held is the status of a record that waits to move to another zone: what it has in DNS stays for now.
func Held(prev v1beta1.RecordStatus, generation int64, message string, now time.Time) v1beta1.RecordStatus {
	next := *prev.DeepCopy()
	dropClaims(&next.Conditions)
	next.ObservedGeneration = generation
	Set(&next.Conditions, Ready, False(Pending, message), generation, now)
	Set(&next.Conditions, Programmed, False(Pending, message), generation, now)
	meta.RemoveStatusCondition(&next.Conditions, Stalled)
	return next
}

// Unselected is the status of a record that no zone selects: nothing of it is in DNS.
func Unselected(prev v1beta1.RecordStatus, generation int64, why Verdict, now time.Time) v1beta1.RecordStatus {
	next := v1beta1.RecordStatus{
		ObservedGeneration: generation,
		LastUpdated:        prev.LastUpdated,
		Addresses:          prev.Addresses,
		Conditions:         prev.DeepCopy().Conditions,
	}
	meta.RemoveStatusCondition(&next.Conditions, Programmed)
	meta.RemoveStatusCondition(&next.Conditions, Accepted)
	meta.RemoveStatusCondition(&next.Conditions, Stalled)
	dropClaims(&next.Conditions)
	Set(&next.Conditions, Ready, why, generation, now)
	return next
}

// ElsewhereRemark completes a message about a record that no zone selects: how a zone of another namespace takes it.
const ElsewhereRemark = "; a zone of another namespace takes it if a spec.recordsFrom[].namespaceSelector of the zone matches this namespace, and annotation " +
	v1beta1.AllowZoneNamespacesAnnotation + " of the record lists the zone's"

// Set writes one condition; its transition time changes only with its status. Ready is the first of all: scripts read conditions[0].
func Set(conditions *[]metav1.Condition, kind string, v Verdict, generation int64, now time.Time) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: v.Status, Reason: v.Reason, Message: TruncateMessage(v.Message),
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	})
	if n := slices.IndexFunc(*conditions, isReady); n > 0 {
		ready := (*conditions)[n]
		*conditions = slices.Insert(slices.Delete(*conditions, n, n+1), 0, ready)
	}
}

// dropClaims removes what only a former operator can have said in ours' name, and nobody keeps true: the usual conditions of an operator
// that the kind does not have here. Conditions with other names are those of others, and stay.
func dropClaims(conditions *[]metav1.Condition, own ...string) {
	for _, claim := range []string{Available, Progressing, Degraded, Failed} {
		if !slices.Contains(own, claim) {
			meta.RemoveStatusCondition(conditions, claim)
		}
	}
}

func isReady(c metav1.Condition) bool { return c.Type == Ready }

// TruncateMessage bounds a message at the 1024 bytes that the note of an Event may have (events.k8s.io/v1). metav1.Condition allows 32768,
// of which nobody reads as many. It replaces what a terminal would obey: servers and sidecars say what they like.
func TruncateMessage(message string) string {
	const most = 1024
	message = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, message)
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most-3], "") + "..."
}

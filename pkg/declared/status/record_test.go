package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

var (
	early = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	late  = early.Add(time.Hour)
)

func zone() *v1beta1.DNSZone {
	z := &v1beta1.DNSZone{}
	z.Namespace, z.Name, z.Spec.ZoneName = "team", "example", "example.com"
	return z
}

func programmed(hash string) RecordFacts {
	return RecordFacts{
		Zone: zone(), Generation: 1, Owner: "www.example.com", Hash: hash, Addresses: "192.0.2.1",
		Accepted: True(Accepted, "part of the zone"), Programmed: True(Programmed, "served"), ReadyReason: ReconcileFailed,
	}
}

func TestRecordIsUnchangedByTheSameFacts(t *testing.T) {
	first := Record(v1beta1.RecordStatus{}, programmed("a"), early)
	again := Record(first, programmed("a"), late)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the same facts an hour later changed the status:\n%s", diff)
	}
}

func TestRecordKeepsWhatIsInDNSUntilTheNewDataIsProgrammed(t *testing.T) {
	published := Record(v1beta1.RecordStatus{}, programmed("a"), early)
	renamed := programmed("b")
	renamed.Owner, renamed.Generation = "web.example.com", 2
	renamed.Programmed = False(ReconcileFailed, "refused")
	waiting := Record(published, renamed, late)
	if waiting.PublishedName != "www.example.com" || waiting.RecordHash != "a" || !waiting.LastUpdated.Equal(published.LastUpdated) {
		t.Errorf("the status tells of data that is not in DNS: %+v", waiting)
	}
	if c := meta.FindStatusCondition(waiting.Conditions, Ready); c.Status != metav1.ConditionFalse || c.Reason != ReconcileFailed || c.ObservedGeneration != 2 {
		t.Errorf("Ready is %+v", c)
	}
	renamed.Absent = true
	if gone := Record(published, renamed, late); gone.PublishedName != "" || gone.RecordHash != "" {
		t.Errorf("the status tells of data that is not in DNS any more: %+v", gone)
	}
	renamed.Programmed = True(Programmed, "served")
	done := Record(waiting, renamed, late)
	if done.PublishedName != "web.example.com" || done.RecordHash != "b" || !done.LastUpdated.Time.Equal(late) {
		t.Errorf("the status does not tell of the new data: %+v", done)
	}
}

func TestRecordThatLostTellsOfNothingInDNS(t *testing.T) {
	lost := programmed("a")
	lost.Accepted, lost.Programmed = False(Conflict, "www.example.com. has a CNAME"), False(Conflict, "www.example.com. has a CNAME")
	published := Record(v1beta1.RecordStatus{}, programmed("a"), early)
	if waiting := Record(published, lost, late); waiting.PublishedName != "www.example.com" || waiting.RecordHash != "a" {
		t.Errorf("the status does not tell of what is still served: %+v", waiting)
	}
	lost.Absent = true
	gone := Record(published, lost, late)
	if gone.PublishedName != "" || gone.RecordHash != "" || gone.Zone != "example.com" {
		t.Errorf("the status tells of data that is not in DNS: %+v", gone)
	}
	if back := Record(gone, programmed("a"), late); back.PublishedName != "www.example.com" || back.RecordHash != "a" || !back.LastUpdated.Time.Equal(late) {
		t.Errorf("the status does not tell that it is served again: %+v", back)
	}
}

func TestUnselectedTellsOfNothingInDNS(t *testing.T) {
	left := Unselected(Record(v1beta1.RecordStatus{}, programmed("a"), early), 3, NoZoneSelects(&metav1.ObjectMeta{Namespace: "team"}), late)
	if left.Zone != "" || left.ZoneRef != nil || left.PublishedName != "" || left.RecordHash != "" {
		t.Errorf("the status still places the record in a zone: %+v", left)
	}
	if len(left.Conditions) != 1 || left.Conditions[0].Type != Ready || left.Conditions[0].Reason != NotSelected {
		t.Errorf("conditions are %+v", left.Conditions)
	}
}

func TestMessagesStayShortAndValid(t *testing.T) {
	var conditions []metav1.Condition
	Set(&conditions, Ready, False("Long", strings.Repeat("ä", 5000)), 1, early)
	if m := conditions[0].Message; len(m) > 1024 || !strings.HasSuffix(m, "...") || strings.ContainsRune(m, '\uFFFD') {
		t.Errorf("a message of %d bytes ends in %q", len(m), m[len(m)-8:])
	}
}

// Who is told that no zone selects a record learns how a zone of another namespace does.
func TestElsewhereRemark(t *testing.T) {
	for _, want := range []string{"spec.recordsFrom[].namespaceSelector of the zone", "bindy.firestoned.io/allow-zone-namespaces of the record"} {
		if got := NoZoneSelects(&v1beta1.ARecord{}).Message; !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

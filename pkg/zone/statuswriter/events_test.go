package statuswriter

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

func conditions(s metav1.ConditionStatus, reason, message string, generation int64) []metav1.Condition {
	return []metav1.Condition{{Type: status.Programmed, Status: s, Reason: reason, Message: message, ObservedGeneration: generation}}
}

func TestTransition(t *testing.T) {
	yes := conditions("True", status.Programmed, "served", 1)
	no := conditions("False", status.ReconcileFailed, "dns-primary-0: REFUSED", 1)
	cases := map[string]struct {
		prev, next []metav1.Condition
		want       string
	}{
		"programmed for the first time": {nil, yes, "Normal RecordProgrammed served"},
		"programmed as before":          {yes, yes, ""},
		"another generation programmed": {yes, conditions("True", status.Programmed, "served", 2), "Normal RecordProgrammed served"},
		"programmed after a failure":    {no, yes, "Normal RecordProgrammed served"},
		"failed for the first time":     {nil, no, "Warning RecordFailed ReconcileFailed: dns-primary-0: REFUSED"},
		"failed after it was served":    {yes, no, "Warning RecordFailed ReconcileFailed: dns-primary-0: REFUSED"},
		"failed as before":              {no, no, ""},
		"failed in other words":         {no, conditions("False", status.ReconcileFailed, "dns-primary-0: SERVFAIL", 1), ""},
		"failed for another reason":     {no, conditions("False", status.Conflict, "older", 1), "Warning RecordFailed Conflict: older"},
		"failed in another generation":  {no, conditions("False", status.ReconcileFailed, "REFUSED", 2), "Warning RecordFailed ReconcileFailed: REFUSED"},
		"nobody can tell":               {yes, conditions("Unknown", status.Pending, "", 1), ""},
		"no zone has it":                {yes, nil, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kind, reason, note := transitionEvent(c.prev, c.next)
			if got := strings.TrimSpace(kind + " " + reason + " " + note); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestEventsAreLimited(t *testing.T) {
	recorder := events.NewFakeRecorder(10_000)
	a := newEventRecorder(recorder)
	for range 2000 {
		a.recordTransition(&v1beta1.ARecord{}, nil, conditions("True", status.Programmed, "served", 1))
		a.recordTransition(&v1beta1.ARecord{}, nil, conditions("False", status.ReconcileFailed, "REFUSED", 1))
	}
	count := map[string]int{}
	for len(recorder.Events) > 0 {
		count[strings.Fields(<-recorder.Events)[0]]++
	}
	if count["Normal"] < 100 || count["Normal"] > 150 || count["Warning"] < 500 || count["Warning"] > 750 {
		t.Errorf("2000 transitions of each kind made %v", count)
	}
	quiet := newEventRecorder(nil)
	quiet.recordTransition(&v1beta1.ARecord{}, nil, conditions("True", status.Programmed, "served", 1))
}

func TestNotesFitIntoAnEvent(t *testing.T) {
	if note := status.TruncateMessage("a\x1b[2J\u009b\u202e\x9bb\tc\nd"); note != "a\ufffd[2J\ufffd\ufffd\ufffdb\tc\nd" {
		t.Errorf("a message commands a terminal: %q", note)
	}
	if note := status.TruncateMessage(strings.Repeat("ä", 4000)); len(note) > 1024 || !strings.HasSuffix(note, "...") {
		t.Errorf("a note of %d bytes", len(note))
	}
}

// A zone that only a person can help gets one Event for that, and one for its end.
func TestZoneFailureEvent(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	a := newEventRecorder(recorder)
	failed := v1beta1.DNSZoneStatus{FailureReason: "Refused", FailureMessage: strings.Repeat("é", 1000)}
	reworded := failed
	reworded.FailureMessage = "again"
	for _, step := range [][2]v1beta1.DNSZoneStatus{{{}, failed}, {failed, reworded}, {reworded, {}}} {
		a.recordZone(&v1beta1.DNSZone{}, step[0], step[1])
	}
	a.recordDrift(SyncCompleted{Zone: &v1beta1.DNSZone{}})
	a.recordDrift(SyncCompleted{Zone: &v1beta1.DNSZone{}, Drift: 3})
	a.recordNameServers(SyncCompleted{Zone: &v1beta1.DNSZone{}})
	a.recordNameServers(SyncCompleted{Zone: &v1beta1.DNSZone{}, NameServers: "ns1. A 192.0.2.2 instead of 192.0.2.1"})
	if len(recorder.Events) != 4 {
		t.Fatalf("%d Events, want 4", len(recorder.Events))
	}
	if got := <-recorder.Events; !strings.HasPrefix(got, "Warning Refused é") || len(got) > len("Warning Refused ")+1024 {
		t.Errorf("the Event is %d bytes long: %.40s", len(got), got)
	}
	for _, want := range []string{"Normal FailureEnded ", "Warning DriftCorrected ", "Normal NameServersChanged "} {
		if got := <-recorder.Events; !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// regarded keeps what Events are about.
type regarded struct{ objects []runtime.Object }

func (r *regarded) Eventf(about, _ runtime.Object, _, _, _, _ string, _ ...any) {
	r.objects = append(r.objects, about)
}

// client-go counts an Event in the one before if both are about the same, the version included.
func TestDriftIsOneEvent(t *testing.T) {
	r := &regarded{}
	a := newEventRecorder(r)
	for version := range 3 {
		zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "main", UID: "1", ResourceVersion: strconv.Itoa(version)}}
		a.recordDrift(SyncCompleted{Zone: zone, Drift: 1})
	}
	if len(r.objects) != 3 || !reflect.DeepEqual(r.objects[0], r.objects[2]) {
		t.Errorf("Events are about %v", r.objects)
	}
}

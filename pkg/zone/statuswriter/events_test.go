package statuswriter

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
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
	a := newEventRecorder(recorder, testScheme(t))
	for range 2000 {
		a.recordTransition(&v1beta1.ARecord{}, nil, conditions("True", status.Programmed, "served", 1))
		a.recordTransition(&v1beta1.ARecord{}, nil, conditions("False", status.ReconcileFailed, "REFUSED", 1))
	}
	count := map[string]int{}
	for len(recorder.Events) > 0 {
		count[strings.Fields(<-recorder.Events)[0]]++
	}
	if count["Normal"] < 50 || count["Normal"] > 75 || count["Warning"] < 250 || count["Warning"] > 375 {
		t.Errorf("2000 transitions of each kind in one namespace made %v", count)
	}
	quiet := newEventRecorder(nil, nil)
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
	a := newEventRecorder(recorder, testScheme(t))
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

// regarded keeps what Events are about, and what they say.
type regarded struct {
	objects []runtime.Object
	notes   []string
}

func (r *regarded) Eventf(about, _ runtime.Object, _, reason, _, note string, args ...any) {
	r.objects, r.notes = append(r.objects, about), append(r.notes, reason+" "+fmt.Sprintf(note, args...))
}

// client-go counts an Event in the one before if both are about the same, the version included.
func TestDriftIsOneEvent(t *testing.T) {
	r := &regarded{}
	a := newEventRecorder(r, testScheme(t))
	for version := range 3 {
		zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "main", UID: "1", ResourceVersion: strconv.Itoa(version)}}
		a.recordDrift(SyncCompleted{Zone: zone, Drift: 1})
	}
	if len(r.objects) != 3 || !reflect.DeepEqual(r.objects[0], r.objects[2]) {
		t.Errorf("Events are about %v", r.objects)
	}
}

// What was taken out of a declared RRset is named on each object that declares it, not on the zone, and a flood of it stays small.
func TestRemovedValuesAreNamed(t *testing.T) {
	zone := zoneNamed("example")
	recordOf := func(name, owner string) source.Object {
		r := &v1beta1.TXTRecord{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
		r.Spec.Name, r.Spec.Text = owner, []string{name}
		return r
	}
	objects := []source.Object{recordOf("one", "_acme-challenge"), recordOf("two", "_acme-challenge")}
	removed := map[rrset.Key][]string{{Name: "example.com.", Type: dns.TypeNS}: {"ns.elsewhere.test."}}
	for n := range 2 * maxRemoved {
		name := fmt.Sprintf("more%02d", n)
		objects = append(objects, recordOf(name, name))
	}
	desired, err := source.Build(zone, objects, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &regarded{}
	a := newEventRecorder(r, testScheme(t))
	challenge := rrset.Key{Name: "_acme-challenge." + desired.Name, Type: dns.TypeTXT}
	removed[challenge] = []string{`"b"`, `"a"`, `"b"`}
	a.recordDrift(SyncCompleted{Zone: zone, Desired: desired, Removed: removed})
	if len(r.objects) != 2 || len(r.notes) != 2 || !strings.Contains(r.notes[0], "ValueRemoved removed from "+challenge.String()+`: "a", "b", which somebody else`) || !strings.Contains(r.notes[0], "To have both, declare") {
		t.Fatalf("%v: %q", r.objects, r.notes)
	}
	for i, name := range []string{"one", "two"} {
		about := r.objects[i].(*corev1.ObjectReference)
		if about.Name != name || about.UID != types.UID(name) || about.Kind != "TXTRecord" || about.ResourceVersion != "" {
			t.Errorf("about %+v", about)
		}
	}
	for key := range desired.RRsets.All() {
		removed[key] = []string{strings.Repeat("x", 5000)}
	}
	r.objects, r.notes = nil, nil
	a.recordDrift(SyncCompleted{Zone: zone, Desired: desired, Removed: removed})
	if len(r.objects) != maxRemoved || len(r.notes[0]) > 1024+len("ValueRemoved ") || !strings.Contains(r.notes[0], "To have both") {
		t.Errorf("%d Events, the first: %q", len(r.objects), r.notes)
	}
}

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

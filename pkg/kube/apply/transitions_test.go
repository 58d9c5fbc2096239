package apply

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

func TestTransitions(t *testing.T) {
	summary := func(kind string, s metav1.ConditionStatus, message string) Summary {
		return Summary{Conditions: []metav1.Condition{{Type: kind, Status: s, Reason: "Reason", Message: message}}}
	}
	failed := summary("Ready", "False", "no progress")
	failed.FailureReason, failed.FailureMessage = "ProgressDeadlineExceeded", "no progress"
	reworded := failed
	reworded.FailureMessage = "still no progress"
	refused, otherwise := summary("Ready", "False", "1 of 2 servers"), summary("Ready", "False", "2 of 2 servers")
	refused.Conditions[0].Reason, otherwise.Conditions[0].Reason = "TransferRefused", "UpdateRefused"
	untransferred, transferred := summary("Ready", "True", ""), summary("Ready", "True", "")
	for _, kind := range []string{"Progressing", "Degraded"} {
		untransferred.Conditions = append(untransferred.Conditions, metav1.Condition{Type: kind, Status: "True", Reason: "ZoneTransferFailed", Message: "dns-1"})
		transferred.Conditions = append(transferred.Conditions, metav1.Condition{Type: kind, Status: "False", Reason: "ReconcileSucceeded"})
	}
	for name, c := range map[string]struct {
		before, after Summary
		want          []string
	}{
		"new and not ready":      {Summary{}, summary("Ready", "False", "1 of 2"), nil},
		"ready for the first":    {Summary{}, summary("Ready", "True", "2 of 2"), []string{"Normal Ready Reason: 2 of 2"}},
		"ready as before":        {summary("Ready", "True", "2 of 2"), summary("Ready", "True", "3 of 3"), nil},
		"not ready any more":     {summary("Ready", "True", "2 of 2"), summary("Ready", "False", "1 of 2"), []string{"Warning NotReady Reason: 1 of 2"}},
		"in other words":         {summary("Ready", "False", "1 of 2"), summary("Ready", "False", "0 of 2"), nil},
		"failed by its deadline": {summary("Ready", "True", ""), failed, []string{"Warning ProgressDeadlineExceeded no progress"}},
		"failed as before":       {failed, reworded, nil},
		"failure ended":          {failed, summary("Ready", "True", "2 of 2"), []string{"Normal FailureEnded no longer failed with ProgressDeadlineExceeded", "Normal Ready Reason: 2 of 2"}},
		"new pod":                {Summary{}, summary("Pod-0", "True", "dns-0"), []string(nil)},
		"pod lost":               {summary("Pod-0", "True", "dns-0"), summary("Pod-0", "False", "dns-0 crashes"), []string{"Warning ServerLost Pod-0: Reason: dns-0 crashes"}},
		"pod back":               {summary("Pod-0", "False", "dns-0 crashes"), summary("Pod-0", "True", ""), []string{"Normal ServerBack Pod-0: Reason"}},
		"provider lost":          {summary("Reachable", "True", ""), summary("Reachable", "Unknown", "no answer"), []string{"Warning ServerLost Reachable: Reason: no answer"}},
		"transfer refused":       {summary("Ready", "True", ""), refused, []string{"Warning TransferRefused 1 of 2 servers"}},
		"refused from the start": {Summary{}, refused, []string{"Warning TransferRefused 1 of 2 servers"}},
		"refused as before":      {refused, refused, nil},
		"update refused as well": {refused, otherwise, []string{"Warning UpdateRefused 2 of 2 servers"}},
		"granted":                {refused, summary("Ready", "True", "2 of 2"), []string{"Normal Ready Reason: 2 of 2"}},
		"zone not transferred":   {transferred, untransferred, []string{"Warning ZoneTransferFailed dns-1"}},
		"zone transferred":       {untransferred, transferred, []string{"Normal FailureEnded no longer failed with ZoneTransferFailed"}},
		"its primary fails":      {untransferred, summary("Ready", "False", "1 of 1"), []string{"Warning NotReady Reason: 1 of 1"}},
		"other conditions":       {summary("Progressing", "True", ""), summary("Progressing", "False", ""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			NewTransitions(recorder, testScheme(t)).Record(&v1beta1.Bind9Instance{}, c.before, c.after)
			var got []string
			for len(recorder.Events) > 0 {
				got = append(got, <-recorder.Events)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
		})
	}
}

// A fight has one Event for its beginning, whatever is said of it later, and one for its end.
func TestContestEvents(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	contested := func(message string) Summary {
		return Summary{Conditions: []metav1.Condition{{Type: status.Contested, Status: metav1.ConditionTrue, Reason: status.Overwritten, Message: message}}}
	}
	for _, step := range [][2]Summary{{{}, contested("www. A")}, {contested("www. A"), contested("mail. A")}, {contested("mail. A"), {}}} {
		NewTransitions(recorder, testScheme(t)).Record(&v1beta1.DNSZone{}, step[0], step[1])
	}
	close(recorder.Events)
	var got []string
	for e := range recorder.Events {
		got = append(got, e)
	}
	if len(got) != 2 || got[0] != "Warning Contested www. A" || !strings.HasPrefix(got[1], "Normal ContestEnded ") {
		t.Errorf("%q", got)
	}
}

func TestTransitionsAreLimited(t *testing.T) {
	recorder := events.NewFakeRecorder(10_000)
	transitions := NewTransitions(recorder, testScheme(t))
	for range 2000 {
		transitions.Emit(&v1beta1.DNSZone{}, "Warning", DriftCorrected, strings.Repeat("ä", 2000))
	}
	if n := len(recorder.Events); n < 50 || n > 75 { // one namespace has half
		t.Errorf("2000 changes made %d Events", n)
	}
	if got := <-recorder.Events; len(got) > len("Warning DriftCorrected ")+1024 {
		t.Errorf("a note has %d bytes", len(got))
	}
	var none *Transitions
	none.Emit(&v1beta1.DNSZone{}, "Normal", KeyRotated, "")
	NewTransitions(nil, nil).Emit(&v1beta1.DNSZone{}, "Normal", KeyRotated, "")
}

// countingSink keeps what would be stored of Events: a note for each, and how often it was counted in a series.
type countingSink struct {
	mu      sync.Mutex
	created map[string]string
	counted map[string]int32
}

// Create implements events.EventSink.
func (s *countingSink) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created[e.Name] = e.Note
	s.counted[e.Note]++
	return e, nil
}

// Update implements events.EventSink.
func (s *countingSink) Update(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	return e, nil
}

// Patch implements events.EventSink.
func (s *countingSink) Patch(_ context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted[s.created[e.Name]]++
	return e, nil
}

// Two Events with one reason about one version of an object are told apart by client-go only if they say so.
func TestNotesAreNotMerged(t *testing.T) {
	sink := &countingSink{created: map[string]string{}, counted: map[string]int32{}}
	broadcaster := events.NewBroadcaster(sink)
	t.Cleanup(broadcaster.Shutdown)
	if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	transitions := NewTransitions(broadcaster.NewRecorder(testScheme(t), FieldOwner), testScheme(t))
	zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "main", UID: "1", ResourceVersion: "7"}}
	whatever := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "DNSZone"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "main", UID: "1"},
	}
	lost := func(pods ...string) (s Summary) {
		for _, pod := range []string{"Pod-0", "Pod-1"} {
			c := metav1.Condition{Type: pod, Status: "True", Reason: "Running"}
			if slices.Contains(pods, pod) {
				c.Status, c.Reason = "False", "Crashing"
			}
			s.Conditions = append(s.Conditions, c)
		}
		return s
	}
	step := func(want map[string]int32, do func()) {
		t.Helper()
		do()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			sink.mu.Lock()
			diff := cmp.Diff(want, sink.counted)
			sink.mu.Unlock()
			if diff == "" {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("Events (-want +got):\n%s", diff)
			}
		}
	}
	want := map[string]int32{"Pod-0: Crashing": 1, "Pod-1: Crashing": 1}
	step(want, func() { transitions.Record(zone, lost(), lost("Pod-0", "Pod-1")) })
	want["ns1 has 192.0.2.1"] = 1
	step(want, func() { transitions.Emit(zone, "Normal", NameServersChanged, "ns1 has 192.0.2.1") })
	want["ns1 has 192.0.2.2"] = 1
	step(want, func() { transitions.Emit(zone, "Normal", NameServersChanged, "ns1 has 192.0.2.2") })
	want["ns1 has 192.0.2.2"] = 2 // the same again
	step(want, func() { transitions.Emit(zone, "Normal", NameServersChanged, "ns1 has 192.0.2.2") })
	want["RRsets: 1"] = 1
	step(want, func() { transitions.EmitSeries(whatever, "Warning", DriftCorrected, "RRsets: 1") })
	want["RRsets: 1"] = 2
	step(want, func() { transitions.EmitSeries(whatever, "Warning", DriftCorrected, "RRsets: 3") })
}

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// Objects of one namespace, whose states change as quickly as their owner likes, leave room for the Events of others.
func TestNamespacesShareTheLimitOfEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := NewEventLimit(10, 100)
		for range 60 { // seconds
			for range 1000 {
				limit.Take("flood")
			}
			for range 5 {
				if !limit.Take("quiet") {
					t.Fatal("another namespace has used up the Events of this one")
				}
			}
			time.Sleep(time.Second)
		}
	})
}

// What is remembered of namespaces that have been is bounded.
func TestEventLimitForgetsNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := NewEventLimit(10, 100)
		for n := range 2 * maxIdle {
			limit.Take(strconv.Itoa(n))
			time.Sleep(time.Second)
		}
		if n := len(limit.namespaces); n > maxIdle {
			t.Errorf("%d namespaces are remembered", n)
		}
	})
}

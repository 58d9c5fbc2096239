package apply

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			NewTransitions(recorder).Record(&v1beta1.Bind9Instance{}, c.before, c.after)
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
		NewTransitions(recorder).Record(&v1beta1.DNSZone{}, step[0], step[1])
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
	transitions := NewTransitions(recorder)
	for range 2000 {
		transitions.Emit(&v1beta1.DNSZone{}, "Warning", DriftCorrected, strings.Repeat("ä", 2000))
	}
	if n := len(recorder.Events); n < 100 || n > 150 {
		t.Errorf("2000 changes made %d Events", n)
	}
	if got := <-recorder.Events; len(got) > len("Warning DriftCorrected ")+1024 {
		t.Errorf("a note has %d bytes", len(got))
	}
	var none *Transitions
	none.Emit(&v1beta1.DNSZone{}, "Normal", KeyRotated, "")
	NewTransitions(nil).Emit(&v1beta1.DNSZone{}, "Normal", KeyRotated, "")
}

package syncstatus

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// The most serious of what rows say is the reason of Validated. What is Bogus is neither programmed nor propagated.
func TestValidated(t *testing.T) {
	type row struct {
		state    syncv1.ServerState
		security syncv1.Security
	}
	for name, c := range map[string]struct {
		rows   []row
		status metav1.ConditionStatus
		reason string
		phase  syncv1.Phase
	}{
		"secure":    {[]row{{syncv1.StateInSync, syncv1.SecuritySecure}, {syncv1.StateInSync, syncv1.SecuritySecure}}, "True", "Secure", syncv1.PhaseInSync},
		"insecure":  {[]row{{syncv1.StateInSync, syncv1.SecurityInsecure}}, "True", "Insecure", syncv1.PhaseInSync},
		"expiring":  {[]row{{syncv1.StateInSync, syncv1.SecuritySecure}, {syncv1.StateInSync, syncv1.SecurityExpiring}}, "True", "Expiring", syncv1.PhaseInSync},
		"bogus":     {[]row{{syncv1.StateInSync, syncv1.SecuritySecure}, {syncv1.StateBogus, syncv1.SecurityBogus}}, "False", "Bogus", syncv1.PhaseOutOfSync},
		"unknown":   {[]row{{syncv1.StateInSync, syncv1.SecuritySecure}, {syncv1.StateUnreachable, syncv1.SecurityUnknown}}, "Unknown", "NotValidated", syncv1.PhaseOutOfSync},
		"undecided": {[]row{{syncv1.StateInSync, ""}}, "", "", syncv1.PhaseInSync},
	} {
		v := statusFacts{accepted: status.True(status.Accepted, "")}
		for _, r := range c.rows {
			v.rows = append(v.rows, syncv1.ServerStatus{Role: string(observe.Primary), State: r.state, Security: r.security})
			v.waiting = append(v.waiting, false)
		}
		s := note(&syncv1.SyncStatus{Status: v.buildStatus()})
		var got metav1.Condition
		for _, condition := range s.Status.Conditions {
			if condition.Type == syncv1.ConditionValidated {
				got = condition
			}
		}
		if got.Status != c.status || got.Reason != c.reason || s.Status.Phase != c.phase {
			t.Errorf("%s: %s %s, %s", name, got.Status, got.Reason, s.Status.Phase)
		}
	}
}

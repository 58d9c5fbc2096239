package syncstatus

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sync "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// The most serious of what rows say is the reason of Validated. What is Bogus is neither programmed nor propagated.
func TestValidated(t *testing.T) {
	type row struct {
		state    sync.ServerState
		security sync.Security
	}
	for name, c := range map[string]struct {
		rows   []row
		status metav1.ConditionStatus
		reason string
		phase  sync.Phase
	}{
		"secure":    {[]row{{sync.StateInSync, sync.SecuritySecure}, {sync.StateInSync, sync.SecuritySecure}}, "True", "Secure", sync.PhaseInSync},
		"insecure":  {[]row{{sync.StateInSync, sync.SecurityInsecure}}, "True", "Insecure", sync.PhaseInSync},
		"expiring":  {[]row{{sync.StateInSync, sync.SecuritySecure}, {sync.StateInSync, sync.SecurityExpiring}}, "True", "Expiring", sync.PhaseInSync},
		"bogus":     {[]row{{sync.StateInSync, sync.SecuritySecure}, {sync.StateBogus, sync.SecurityBogus}}, "False", "Bogus", sync.PhaseOutOfSync},
		"unknown":   {[]row{{sync.StateInSync, sync.SecuritySecure}, {sync.StateUnreachable, sync.SecurityUnknown}}, "Unknown", "NotValidated", sync.PhaseOutOfSync},
		"undecided": {[]row{{sync.StateInSync, ""}}, "", "", sync.PhaseInSync},
	} {
		v := statusFacts{accepted: status.True(status.Accepted, "")}
		for _, r := range c.rows {
			v.rows = append(v.rows, sync.ServerStatus{Role: string(observe.Primary), State: r.state, Security: r.security})
			v.waiting = append(v.waiting, false)
		}
		s := note(&sync.SyncStatus{Status: v.buildStatus()})
		var got metav1.Condition
		for _, condition := range s.Status.Conditions {
			if condition.Type == sync.ConditionValidated {
				got = condition
			}
		}
		if got.Status != c.status || got.Reason != c.reason || s.Status.Phase != c.phase {
			t.Errorf("%s: %s %s, %s", name, got.Status, got.Reason, s.Status.Phase)
		}
	}
}

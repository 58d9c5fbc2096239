package reconcile

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Two Kubernetes clusters publish in one zone of a server that others run. Each keeps to what its own objects declare, rests, and takes nothing
// else along when it leaves.
func TestTwoKubernetesClustersAtOneServer(t *testing.T) {
	berlin, outside := newSharedRig(t, "")
	paris := newBareRig(t)
	paris.share("corp", outside)
	paris.primary = berlin.primary
	all := map[string]*rig{"berlin": berlin, "paris": paris}
	for name, r := range all {
		r.zones.Set(r.a(name, 1, "192.0.2.10"))
		r.mustSync()
	}
	for name, r := range all {
		if p := r.mustSync(); p.event.Drift > 0 || p.event.Foreign != 1 {
			t.Errorf("%s: drift %d, %d foreign", name, p.event.Drift, p.event.Foreign)
		}
		if p := r.pass(); !p.Rested {
			t.Errorf("%s does not rest: %+v", name, p.event)
		}
	}
	gone := berlin.a("berlin", 1, "192.0.2.10")
	gone.DeletionTimestamp = new(metav1.Now())
	berlin.zones.Set(gone)
	berlin.mustSync()
	paris.mustSync()
	paris.holds("berlin")
	paris.holds("paris", "192.0.2.10")
}

package syncstatus

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// Servers that all serve what is declared are not enough where the Service of one sends queries elsewhere as well: the record, its zone and
// the instance say so. What else is wrong comes first.
func TestForeignEndpoints(t *testing.T) {
	z := testZone()
	r := testRecord(z)
	on := servers()
	on[1].Foreign = "instance b: the Service also sends queries to others than the instance's pods: Pod old"
	desired := build(t, z, r)
	good, behind := holds(desired, 7), serves(6, "192.0.2.9")
	for name, c := range map[string]struct {
		servers []observe.Server
		last    observe.Observation
		phase   syncv1.Phase
		reason  string
	}{
		"all in sync":            {on, good, syncv1.PhaseOutOfSync, status.ForeignPods},
		"one behind":             {on, behind, syncv1.PhasePropagating, string(syncv1.StateStale)},
		"without anybody else's": {servers(), good, syncv1.PhaseInSync, string(syncv1.StateInSync)},
	} {
		j := Evaluate(NewDesiredState(z, desired, []source.Object{r}, nil), c.servers, []observe.Observation{good, c.last}, asked, History{})
		for of, s := range map[string]*syncv1.SyncStatus{"record": note(j.RecordStatus(r)), "zone": note(j.ZoneStatus(nil))} {
			propagated := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionPropagated)
			if s.Status.Phase != c.phase || s.Status.InSync != (c.phase == syncv1.PhaseInSync) || propagated.Reason != c.reason {
				t.Errorf("%s, %s: %s, %+v", name, of, s.Status.Phase, propagated)
			}
			if says := strings.Contains(propagated.Message, "Pod old"); says != (c.reason == status.ForeignPods) {
				t.Errorf("%s, %s: %s", name, of, propagated.Message)
			}
		}
	}
	i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "b"}}
	ready := observe.Server{Namespace: "dns", Instance: "b", Pod: "b-0", PodReady: true, Foreign: on[1].Foreign}
	s := note(InstanceStatus(i, []observe.Server{ready}, nil, asked))
	if c := s.Status.Conditions[0]; s.Status.Phase != syncv1.PhaseOutOfSync || c.Type != syncv1.ConditionReady || c.Reason != status.ForeignPods {
		t.Errorf("instance: %s, %+v", s.Status.Phase, c)
	}
}

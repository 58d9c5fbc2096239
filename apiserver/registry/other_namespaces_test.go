package registry

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// A record of another namespace is judged by the zone that takes it while the namespace has the labels that the zone selects, in requests and in
// watches. Its readers see no more of the zone than name and servers.
func TestRecordOfAnotherNamespace(t *testing.T) {
	w := newWorld(t)
	w.Lagging(bind.Zone{Name: "example.test.", Records: "www A 192.0.2.7"})
	namespace := func(team string) {
		w.Apply(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{"team": team}}})
	}
	z := fakekube.Zone("example.test", "primary", "secondary")
	z.Spec.RecordsFrom[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "yes"}}
	w.Apply(z)
	record := w.Record(z, "www", "192.0.2.7")
	record.Namespace, record.Annotations = "team", map[string]string{v1beta1.AllowZoneNamespacesAnnotation: z.Namespace}
	w.Apply(record)
	namespace("no")
	events := w.watch(query{namespace: "team"}, store.WatchOptions{})
	await := func(what string, is func(*syncv1.SyncStatus) bool) {
		t.Helper()
		t.Logf("awaiting %s", what)
		for {
			if _, s := events.next(); is(s) {
				return
			}
		}
	}
	unselected := func(s *syncv1.SyncStatus) bool { return s.Status.FailureReason == "NotSelected" && s.Zone == "" }
	await("unselected", unselected)
	namespace("yes")
	await("in sync", func(s *syncv1.SyncStatus) bool {
		return s.Status.InSync && s.Zone == "example.test" && len(s.Servers) == 2 && s.Servers[0].Namespace == z.Namespace
	})
	secret := z.DeepCopy()
	secret.Generation, secret.Spec.ZoneName = 2, "not..a.name"
	w.Apply(secret)
	await("of a zone that cannot be read", func(s *syncv1.SyncStatus) bool {
		c := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionAccepted)
		if c.Status == metav1.ConditionFalse && c.Message != "zone "+z.Name+": it is not served as declared; its owner can see why" {
			t.Errorf("the reader of the record learns %q", c.Message)
		}
		return c.Status == metav1.ConditionFalse
	})
	z.Generation = 3
	w.Apply(z)
	await("in sync again", func(s *syncv1.SyncStatus) bool { return s.Status.InSync })
	namespace("no")
	await("unselected again", unselected)
}

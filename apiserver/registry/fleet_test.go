package registry

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// A cluster-scoped cluster has its SyncStatus in the namespace of its instances and nowhere else, and rows for those that
// it made, not for those that only say so.
func TestGlobalClusterIsWhereItsInstancesAre(t *testing.T) {
	w := newWorld(t)
	c := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "all", UID: "all"}}
	w.Apply(c)
	w.Locate(desired.Key{Kind: "Bind9GlobalCluster", Name: "all"}, "home")
	server := func(name string, owner types.UID) *v1beta1.Bind9Instance {
		i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: name}}
		i.Spec.ClusterRef, i.Spec.Role = "all", v1beta1.RolePrimary
		yes := true
		i.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Bind9GlobalCluster", Name: "all", UID: owner, Controller: &yes}}
		return i
	}
	w.Apply(server("all-primary-0", "all"))
	w.Apply(server("stranger", "other"))
	w.Eventually("the row is there", func() bool {
		s, err := w.verdicts.getVerdict(w.ctx, desired.Key{Kind: subject.GlobalClusterKind.Kind, Namespace: "home", Name: "all"})
		return err == nil && s.Namespace == "home" && s.ObjectRef.Namespace == "" && len(s.Servers) == 1 &&
			s.Servers[0].Pod == "all-primary-0-0" && s.Servers[0].PodPhase == corev1.PodPhase("")
	})
	list, err := w.tryList(query{namespace: ns})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("another namespace has %d objects: %v", len(list.Items), err)
	}

	// Nor is it watched for anywhere else.
	for namespace, want := range map[string]int{"home": 3, ns: 0} {
		events := w.watch(query{namespace: namespace}, store.WatchOptions{SendInitialEvents: new(true), Bookmarks: true})
		got := 0
		for e := range events.ResultChan() {
			if e.Type == watch.Bookmark {
				break
			}
			got++
		}
		if got != want {
			t.Errorf("a watch of namespace %s begins with %d objects, want %d", namespace, got, want)
		}
		events.Stop()
	}
}

// An instance's row tells what its server serves now, to those who ask and to those who watch.
func TestInstanceFollowsItsServer(t *testing.T) {
	w := newWorld(t)
	primary, secondary := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	z := fakekube.Zone("example.test", "primary", "secondary")
	w.Apply(z)
	w.get("dnszone.example.test") // waits for the zone's cache
	s := w.get("bind9instance.secondary")
	row := s.Servers[0]
	if s.Status.Phase != syncv1.PhaseInSync || row.Zones == nil || row.Zones.InSync != 1 || *row.Zones.Worst[0].Serial != 10 {
		t.Fatalf("%s: %+v", s.Status.Phase, row)
	}
	if !strings.HasPrefix(row.Version, "9.") || row.ObservedAt == nil {
		t.Errorf("version %q, observed at %v", row.Version, row.ObservedAt)
	}
	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
	s = w.get("bind9instance.secondary")
	if s.Status.Phase != syncv1.PhasePropagating || s.Servers[0].State != syncv1.StateStale || s.Servers[0].Zones.OutOfSync != 1 {
		t.Errorf("behind the primary: %s, %+v", s.Status.Phase, s.Servers[0])
	}

	events, err := w.tryWatch(query{namespace: ns, fields: fields.OneTermEqualSelector(syncv1.FieldName, "bind9instance.secondary")}, store.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	var seen []string
	for e := range events.ResultChan() {
		phase := e.Object.(*store.Object).Status.Phase
		seen = append(seen, string(e.Type)+" "+string(phase))
		if phase == syncv1.PhaseInSync {
			break
		}
		if _, err := secondary.Rndc("refresh", "example.test"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"ADDED Propagating", "MODIFIED InSync"}, seen); diff != "" {
		t.Errorf("events:\n%s", diff)
	}
}

// What no answer is known of is not in sync: not for who evaluates what there is, without a question.
func TestInstanceWithoutAnswers(t *testing.T) {
	w := newWorld(t)
	w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	w.Apply(fakekube.Zone("example.test", "primary", "secondary"))
	w.Eventually("the zone is known", func() bool {
		_, known := w.verdicts.index.Resolve(keyOf("dnszone.example.test"))
		return known
	})
	evaluate := func() *syncv1.SyncStatus {
		return w.verdicts.refresher.Verdicts(w.ctx, []desired.Key{keyOf("bind9instance.secondary")}, time.Time{})[0]
	}
	if s := evaluate(); s.Status.InSync || s.Servers[0].State != syncv1.StateUnreachable {
		t.Errorf("before any question: %s, %+v", s.Status.Phase, s.Servers[0])
	}
	w.get("bind9instance.secondary")
	if s := evaluate(); !s.Status.InSync {
		t.Errorf("once it has answered: %s, %+v", s.Status.Phase, s.Servers[0])
	}
}

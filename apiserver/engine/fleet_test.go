package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// A cluster-scoped cluster has its SyncStatus in the namespace of its instances and nowhere else, and rows for those that
// it made, not for those that only say so.
func TestGlobalClusterIsWhereItsInstancesAre(t *testing.T) {
	w := newWorld(t)
	c := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "all", UID: "all"}}
	w.apply(c)
	w.mu.Lock()
	located := w.objects[object{Kind: "Bind9GlobalCluster", Name: "all"}].(*v1beta1.Bind9GlobalCluster).DeepCopy()
	located.Namespace = "home"
	w.objects[object{Kind: "Bind9GlobalCluster", Namespace: "home", Name: "all"}] = located
	w.mu.Unlock()
	server := func(name string, owner types.UID) *v1beta1.Bind9Instance {
		i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: name}}
		i.Spec.ClusterRef, i.Spec.Role = "all", v1beta1.RolePrimary
		yes := true
		i.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Bind9GlobalCluster", Name: "all", UID: owner, Controller: &yes}}
		return i
	}
	w.apply(server("all-primary-0", "all"))
	w.apply(server("stranger", "other"))
	w.eventually("the row is there", func() bool {
		s, err := w.engine.Get(w.ctx, syncstatus.GlobalClusterKind, "home", "all")
		return err == nil && s.Namespace == "home" && s.ObjectRef.Namespace == "" && len(s.Servers) == 1 &&
			s.Servers[0].Pod == "all-primary-0-0" && s.Servers[0].PodPhase == corev1.PodPhase("")
	})
	list, err := w.engine.List(w.ctx, Query{Namespace: ns})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("another namespace has %d objects: %v", len(list.Items), err)
	}

	// Nor is it remembered, and watched for, anywhere else.
	s, err := w.engine.Get(w.ctx, syncstatus.GlobalClusterKind, "home", "all")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := objectOf(s), (object{Kind: "Bind9GlobalCluster", Namespace: "home", Name: "all"}); got != want || w.engine.memory.digestOf(want) == 0 {
		t.Errorf("it is known as %v, want %v", got, want)
	}
}

// An instance's row tells what its server serves now, to those who ask and to those who watch.
func TestInstanceFollowsItsServer(t *testing.T) {
	w := newWorld(t)
	primary, secondary := lagging(t, w, bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"})
	z := zone("example.test", "primary", "secondary")
	w.apply(z)
	w.get("dnszone.example.test") // waits for the zone's cache
	s := w.get("bind9instance.secondary")
	row := s.Servers[0]
	if s.Status.Phase != syncv1.PhaseInSync || row.Zones == nil || row.Zones.InSync != 1 || *row.Zones.Worst[0].Serial != 10 {
		t.Fatalf("%s: %+v", s.Status.Phase, row)
	}
	if !strings.HasPrefix(row.Version, "9.") || row.ObservedAt == nil {
		t.Errorf("version %q, observed at %v", row.Version, row.ObservedAt)
	}
	update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
	s = w.get("bind9instance.secondary")
	if s.Status.Phase != syncv1.PhasePropagating || s.Servers[0].State != syncv1.StateStale || s.Servers[0].Zones.OutOfSync != 1 {
		t.Errorf("behind the primary: %s, %+v", s.Status.Phase, s.Servers[0])
	}

	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	events, err := w.engine.Watch(ctx, Query{Namespace: ns, Fields: fields.OneTermEqualSelector(syncv1.FieldName, "bind9instance.secondary")}, WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	var seen []string
	for e := range events.ResultChan() {
		phase := e.Object.(*shared).Status.Phase
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

package engine

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
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
}

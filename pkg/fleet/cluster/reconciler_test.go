package cluster

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// clusterTest is a cluster of some instances in a fake API server, with a clock of its own.
type clusterTest struct {
	*testing.T
	*reconciler
	instances int
	key       client.ObjectKey
	clock     time.Time
	// due is when the reconciler wants to run again, and statusWrites how often it has written the cluster's status.
	due          time.Time
	statusWrites int
}

func newClusterTest(t *testing.T, instances int32) *clusterTest {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, v1beta1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster := &v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "dns", UID: "cluster", Generation: 1}}
	cluster.Spec.Primary, cluster.Spec.Secondary = &v1beta1.RoleConfig{Replicas: new(int32(1))}, &v1beta1.RoleConfig{Replicas: new(instances - 1)}
	h := &clusterTest{T: t, instances: int(instances), key: client.ObjectKeyFromObject(cluster), clock: time.Now()}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster).WithStatusSubresource(cluster, &v1beta1.Bind9Instance{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceApply: func(ctx context.Context, c client.Client, subResource string, o runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
			h.statusWrites++
			return c.SubResource(subResource).Apply(ctx, o, options...)
		}}).Build()
	children := apply.NewChildren(c)
	h.reconciler = &reconciler{client: c, empty: func() client.Object { return &v1beta1.Bind9Cluster{} }, now: func() time.Time { return h.clock },
		Options: Options{Children: children, Keys: &keyrotation.Rotator{Client: c, Children: children, Cache: keyrotation.NewCache(c)}}}
	return h
}

// step reconciles after a moment.
func (h *clusterTest) step() {
	h.Helper()
	h.clock = h.clock.Add(50 * time.Millisecond)
	h.reconcile()
}

func (h *clusterTest) reconcile() {
	h.Helper()
	result, err := h.Reconcile(h.Context(), ctrl.Request{NamespacedName: h.key})
	if err != nil {
		h.Fatal(err)
	}
	h.due = h.clock.Add(result.RequeueAfter)
}

// setReady writes the status of all instances, one by one, and reconciles the cluster after every tenth.
func (h *clusterTest) setReady(ready metav1.ConditionStatus) {
	h.Helper()
	instances, _, err := h.readInstances(h.Context(), h.cluster())
	if err != nil || len(instances) != h.instances {
		h.Fatalf("%d instances: %v", len(instances), err)
	}
	at := 0
	for name := range instances {
		i := &v1beta1.Bind9Instance{}
		if err := h.client.Get(h.Context(), client.ObjectKey{Namespace: h.key.Namespace, Name: name}, i); err != nil {
			h.Fatal(err)
		}
		i.Status.Replicas, i.Status.ReadyReplicas, i.Status.Ready = 1, 0, ready == metav1.ConditionTrue
		if i.Status.Ready {
			i.Status.ReadyReplicas = 1
		}
		i.Status.ObservedGeneration = i.Generation
		meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{Type: "Ready", Status: ready, Reason: "AllReady", Message: "All 1 pods are ready"})
		if err := h.client.Status().Update(h.Context(), i); err != nil {
			h.Fatal(err)
		}
		if at++; at%10 == 0 {
			h.step()
		}
	}
}

// measure fails the test when there are more status writes than one a second, and waits until the last one is done.
func (h *clusterTest) measure(what string, run func()) {
	h.Helper()
	began, before := h.clock, h.statusWrites
	run()
	h.clock = h.due
	h.reconcile()
	span, writes := h.clock.Sub(began), h.statusWrites-before
	h.Logf("%s: %d writes of the cluster's status in %s", what, writes, span)
	if limit := int(span/time.Second) + 1; writes > limit {
		h.Errorf("%s: %d writes of the cluster's status in %s, want at most %d", what, writes, span, limit)
	}
}

// cluster reads the cluster.
func (h *clusterTest) cluster() inventory.Cluster {
	h.Helper()
	o := h.empty()
	if err := h.client.Get(h.Context(), h.key, o); err != nil {
		h.Fatal(err)
	}
	return inventory.AsCluster(o, "")
}

// requireStatus wants a condition for each instance and one for the cluster.
func (h *clusterTest) requireStatus(ready int32) {
	h.Helper()
	if s := h.cluster().Status; s.InstanceCount != 100 || s.ReadyInstances != ready || len(s.Conditions) != 101 {
		h.Errorf("%d instances, %d ready, %d conditions; want 100, %d, 101", s.InstanceCount, s.ReadyInstances, len(s.Conditions), ready)
	}
}

// A cluster of a hundred instances keeps a small status, and neither their coming nor their coming and going makes more than
// one write of it a second.
func TestClusterOfAHundred(t *testing.T) {
	h := newClusterTest(t, 100)
	h.measure("made", func() {
		h.step()
		h.step()
	})
	h.requireStatus(0)
	h.measure("ready", func() { h.setReady(metav1.ConditionTrue) })
	h.requireStatus(100)
	object, err := json.Marshal(h.cluster().Object)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("an object of %d bytes", len(object)); len(object) > 128<<10 {
		t.Errorf("the object has %d bytes", len(object))
	}
	h.measure("400 flaps", func() {
		for range 2 {
			h.setReady(metav1.ConditionFalse)
			h.setReady(metav1.ConditionTrue)
		}
	})
	h.requireStatus(100)
}

// A cluster counts what runs, whoever made it, whatever keeps it from making keys and instances.
func TestClusterKeepsFacts(t *testing.T) {
	h := newClusterTest(t, 2)
	change := func(edit func(*v1beta1.Bind9ClusterSpec)) {
		t.Helper()
		c := h.cluster()
		edit(c.Spec)
		if err := h.client.Update(t.Context(), c.Object); err != nil {
			t.Fatal(err)
		}
	}
	change(func(s *v1beta1.Bind9ClusterSpec) { s.Secondary.Replicas = new(int32(0)) })
	byHand := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "by-hand"}}
	byHand.Spec.ClusterRef = "dns"
	other := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "another-cluster"}}
	other.Spec.ClusterRef = "other"
	for _, i := range []*v1beta1.Bind9Instance{byHand, other} {
		if err := h.client.Create(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	require := func(reason string) {
		t.Helper()
		h.clock = h.clock.Add(time.Minute)
		h.reconcile()
		s := h.cluster().Status
		ready := meta.FindStatusCondition(s.Conditions, "Ready")
		if diff := cmp.Diff([]string{"dns-primary-0", "by-hand"}, s.Instances); diff != "" || s.InstanceCount != 2 || ready.Reason != reason {
			t.Errorf("%d instances, Ready %s: %s\n%s", s.InstanceCount, ready.Reason, ready.Message, diff)
		}
	}
	h.reconcile()
	require("InstancesCreated")
	change(func(s *v1beta1.Bind9ClusterSpec) {
		s.Primary.RNDCKey = &v1beta1.RNDCKeyConfig{SecretRef: &v1beta1.RNDCSecretRef{Name: "nowhere"}}
	})
	require("NotReady")
}

// A new fleet manager concludes nothing from what a former one wrote about an instance until it has looked at that itself; for a while: an
// instance that it cannot look at keeps the others from nobody.
func TestClusterAwaitsItsInstances(t *testing.T) {
	h := newClusterTest(t, 2)
	h.Confirmed = &inventory.Confirmed{}
	h.step() // It makes the instances.
	requireAfter := func(wait time.Duration, ready int32) {
		t.Helper()
		h.clock = h.clock.Add(wait)
		if h.reconcile(); h.cluster().Status.ReadyInstances != ready {
			t.Errorf("%d instances are ready, want %d", h.cluster().Status.ReadyInstances, ready)
		}
	}
	h.setReady(metav1.ConditionTrue)
	requireAfter(2*time.Second, 0)
	owned, _, err := h.readInstances(t.Context(), h.cluster())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range owned {
		h.Confirmed.Add(i)
	}
	requireAfter(2*time.Second, 2)

	h.Confirmed = &inventory.Confirmed{}
	h.setReady(metav1.ConditionFalse)
	requireAfter(2*time.Second, 2)
	requireAfter(time.Minute, 0)
}

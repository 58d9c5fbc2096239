package migrate

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// A ClusterBind9Provider gets the instances that Bindy gave to a cluster in its namespace, and none of a tenant who imitates such a cluster:
// that one is named, and holds up nothing.
func TestInnerClusters(t *testing.T) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, v1beta1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	provider := &v1beta1.ClusterBind9Provider{ObjectMeta: metav1.ObjectMeta{Name: "shared", UID: "provider"}}
	provider.Spec.Namespace = "platform"
	lockstep := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lockstep-system", Name: "lockstep-fleet", Labels: map[string]string{
		"app.kubernetes.io/name": "lockstep", "app.kubernetes.io/component": "fleet",
	}}}
	objects := []client.Object{provider, lockstep}
	for _, namespace := range []string{"platform", "tenant"} {
		cluster := &v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shared", UID: types.UID(namespace), Labels: map[string]string{
			v1beta1.ManagedByLabel: "ClusterBind9Provider", v1beta1.ClusterLabel: "shared",
		}}}
		instance := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shared-primary-0"}}
		instance.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cluster, v1beta1.GroupVersion.WithKind("Bind9Cluster"))}
		objects = append(objects, cluster, instance)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	found, err := takeInventory(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.lost) != 1 || !strings.Contains(found.lost[0], "Bind9Cluster tenant/shared") {
		t.Errorf("not taken over: %q", found.lost)
	}
	if err := found.dissolveClusters(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for namespace, owner := range map[string]string{"platform": "ClusterBind9Provider", "tenant": "Bind9Cluster"} {
		instance := &v1beta1.Bind9Instance{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "shared-primary-0"}, instance); err != nil {
			t.Fatal(err)
		}
		if kind := metav1.GetControllerOf(instance).Kind; kind != owner {
			t.Errorf("the instance in %s is controlled by a %s, want %s", namespace, kind, owner)
		}
		err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "shared"}, &v1beta1.Bind9Cluster{})
		if errors.IsNotFound(err) != (namespace == "platform") {
			t.Errorf("the cluster in %s: %v", namespace, err)
		}
	}
}

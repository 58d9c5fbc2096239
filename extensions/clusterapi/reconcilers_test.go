package clusterapi

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrastructure "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/infrastructure/v1beta1"
)

// Without an owner, and while paused, nothing is done.
func TestCAPTWithoutOwner(t *testing.T) {
	kind := schema.GroupVersionKind{Group: clusterGroup, Version: "v1beta2", Kind: clusterName}
	scheme := runtime.NewScheme()
	if err := infrastructure.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
	for name, c := range map[string]struct {
		change func(o *infrastructure.CAPTCluster, cluster *unstructured.Unstructured)
		owned  bool
	}{
		"an owner":       {func(*infrastructure.CAPTCluster, *unstructured.Unstructured) {}, true},
		"no owner":       {func(o *infrastructure.CAPTCluster, _ *unstructured.Unstructured) { o.OwnerReferences = nil }, false},
		"a former owner": {func(_ *infrastructure.CAPTCluster, cluster *unstructured.Unstructured) { cluster.SetUID("other") }, false},
		"another kind": {func(o *infrastructure.CAPTCluster, _ *unstructured.Unstructured) {
			o.OwnerReferences[0].Kind = "Machine"
		}, false},
		"a paused object": {func(o *infrastructure.CAPTCluster, _ *unstructured.Unstructured) {
			o.Annotations = map[string]string{pausedAnnotation: ""}
		}, false},
		"a paused Cluster": {func(_ *infrastructure.CAPTCluster, cluster *unstructured.Unstructured) {
			cluster.Object["spec"] = map[string]any{"paused": true}
		}, false},
		"an object that goes": {func(o *infrastructure.CAPTCluster, _ *unstructured.Unstructured) {
			o.DeletionTimestamp, o.Finalizers = new(metav1.Unix(1, 0)), []string{"example.com/other"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := &infrastructure.CAPTCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: kind.GroupVersion().String(), Kind: clusterName, Name: "web", UID: "owner"},
			}}}
			cluster := &unstructured.Unstructured{}
			cluster.SetGroupVersionKind(kind)
			cluster.SetNamespace("team")
			cluster.SetName("web")
			cluster.SetUID("owner")
			c.change(o, cluster)
			kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(o, cluster).Build()
			r := &reconciler{client: kube, clusters: clusters{kube, kind}}
			owner, err := r.readOwned(t.Context(), client.ObjectKeyFromObject(o), &infrastructure.CAPTCluster{})
			if err != nil || (owner != nil) != c.owned {
				t.Errorf("owner %v, %v", owner, err)
			}
		})
	}
}

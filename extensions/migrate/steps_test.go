package migrate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A step writes the fields that it is about, and leaves alone what others have put on the object.
func TestStepsKeepOthersMetadata(t *testing.T) {
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "bindy", Name: "operator", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "team": "dns"},
		Labels: map[string]string{"app": "bindy"}, Finalizers: []string{"example.com/keep"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "a"}},
	}}
	operator.Spec.Replicas, operator.Spec.Paused = new(int32(2)), true
	c := newFakeClient(t, operator)
	read := func() *appsv1.Deployment {
		o := &appsv1.Deployment{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(operator), o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	want := read()
	partial := want.DeepCopy()
	partial.Annotations, partial.Spec.Paused = nil, false // What a cache drops is no base of a patch.
	if err := patchOwn(t.Context(), c, partial, "", nil, map[string]any{"spec": map[string]any{"replicas": 0}}); err != nil {
		t.Fatal(err)
	}
	got := read()
	want.ResourceVersion, want.Spec.Replicas = got.ResourceVersion, new(int32(0))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("more than the replicas is written (-want +got):\n%s", diff)
	}
}

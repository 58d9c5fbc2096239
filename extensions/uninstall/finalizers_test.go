package uninstall

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"
)

func TestOthers(t *testing.T) {
	tests := map[string]struct {
		finalizers, want []string
		ours             bool
	}{
		"none":           {nil, []string{}, false},
		"ours alone":     {[]string{"bindy.firestoned.io/finalizer"}, []string{}, true},
		"ours and other": {[]string{"a/b", "bindy.firestoned.io/finalizer", "foregroundDeletion"}, []string{"a/b", "foregroundDeletion"}, true},
		"a similar name": {[]string{"bindy.firestoned.io.example/x"}, []string{"bindy.firestoned.io.example/x"}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rest, ours := foreignFinalizers(tc.finalizers)
			if !slices.Equal(rest, tc.want) || rest == nil || ours != tc.ours {
				t.Errorf("others(%q) = %q, %v", tc.finalizers, rest, ours)
			}
		})
	}
}

func TestGoesWithRelease(t *testing.T) {
	helm := map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	tests := map[string]struct {
		labels, annotations map[string]string
		want                bool
	}{
		"of kubectl":          {nil, nil, false},
		"of a release":        {helm, nil, true},
		"kept by its release": {helm, map[string]string{"helm.sh/resource-policy": "keep"}, false},
	}
	for name, tc := range tests {
		if got := goesWithRelease(&metav1.ObjectMeta{Labels: tc.labels, Annotations: tc.annotations}); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// Removing our finalizers leaves everything else of an object alone.
func TestReleaseKeepsOthersMetadata(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "bindy.firestoned.io", Version: "v1beta1", Resource: "arecords"}
	stored := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "bindy.firestoned.io/v1beta1", Kind: "ARecord"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "www", ResourceVersion: "1", Annotations: map[string]string{"example.com/a": "1"}, Labels: map[string]string{"team": "dns"},
			Finalizers:      []string{"example.com/a", "bindy.firestoned.io/finalizer", "example.com/b"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "a"}},
		},
	}
	client := fake.NewSimpleMetadataClient(scheme, stored.DeepCopy())
	u := &Uninstaller{}
	if count, err := u.removeFinalizers(t.Context(), client, resource); err != nil || count != 1 {
		t.Fatalf("%d objects are released: %v", count, err)
	}
	after, err := client.Resource(resource).Namespace("team").Get(t.Context(), "www", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := stored.ObjectMeta.DeepCopy()
	want.Finalizers = []string{"example.com/a", "example.com/b"}
	if diff := cmp.Diff(want, &after.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

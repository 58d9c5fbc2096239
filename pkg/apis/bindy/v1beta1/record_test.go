package v1beta1

import (
	"cmp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRecordKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if len(RecordKinds) != 10 {
		t.Fatalf("%d record kinds, want 10", len(RecordKinds))
	}
	for _, k := range RecordKinds {
		t.Run(k.Kind, func(t *testing.T) {
			if got, want := k.Resource, strings.ToLower(k.Kind)+"s"; got != want {
				t.Errorf("resource %q, want %q", got, want)
			}
			if got, want := k.Singular, strings.ToLower(k.Kind); got != want {
				t.Errorf("singular %q, want %q", got, want)
			}
			if got, want := k.Kind, cmp.Or(k.Type, "DNS")+"Record"; got != want {
				t.Errorf("kind %q, want %q", got, want)
			}
			checkKind(t, scheme, k.New(), k.GroupVersionKind())
			checkKind(t, scheme, k.NewList(), GroupVersion.WithKind(k.Kind+"List"))
			if got := KindOf(k.New()).Kind; got != k.Kind {
				t.Errorf("KindOf gives %q", got)
			}
			r := k.New()
			r.GetRecordStatus().Zone = "example.com"
			if got := r.DeepCopyObject().(Record).GetRecordStatus().Zone; got != "example.com" {
				t.Errorf("status.zone of the copy is %q", got)
			}
		})
	}
}

func checkKind(t *testing.T, scheme *runtime.Scheme, obj runtime.Object, want schema.GroupVersionKind) {
	t.Helper()
	got, _, err := scheme.ObjectKinds(obj)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != want {
		t.Errorf("scheme knows the object as %v, want %v", got, want)
	}
}

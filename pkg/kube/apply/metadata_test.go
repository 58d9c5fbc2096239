package apply

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/kube/intern"
)

// othersMetadata is what an object has that is not ours, and ours beside it.
func othersMetadata(ours ...string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Namespace: "team", Name: "www", UID: "1",
		Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"spec":{}}`, "example.com/owner": "jane"},
		Labels:      map[string]string{"app": "shop"},
		Finalizers:  []string{"example.com/a", "example.com/b"},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Service", Name: "web", UID: "2"}, {APIVersion: "v1", Kind: "ConfigMap", Name: "web", UID: "3"},
		},
	}
	for _, name := range ours {
		meta.Annotations[name] = "ours"
	}
	if len(ours) > 0 {
		meta.Finalizers = []string{"example.com/a", v1beta1.Finalizer, "example.com/b"}
	}
	return meta
}

// withoutOurs returns the annotations, labels, finalizers and owner references that are not ours.
func withoutOurs(o client.Object) metav1.ObjectMeta {
	others := metav1.ObjectMeta{Annotations: maps.Clone(o.GetAnnotations()), Labels: maps.Clone(o.GetLabels()), OwnerReferences: o.GetOwnerReferences()}
	ours := func(name string, _ string) bool { return strings.HasPrefix(name, v1beta1.GroupName+"/") }
	maps.DeleteFunc(others.Annotations, ours)
	maps.DeleteFunc(others.Labels, ours)
	for _, name := range o.GetFinalizers() {
		if !ours(name, "") && name != metav1.FinalizerDeleteDependents {
			others.Finalizers = append(others.Finalizers, name)
		}
	}
	return others
}

// Whatever is written, and although the cache drops some of it, what others have in an object's metadata stays: the copy that
// `kubectl apply` compares with, most of all.
func TestWritesLeaveOthersMetadata(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, clientgoscheme.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	record := v1beta1.GroupVersion.WithKind("ARecord")
	for name, write := range map[string]func(context.Context, client.Client, *v1beta1.ARecord) error{
		"the first mark": func(ctx context.Context, c client.Client, o *v1beta1.ARecord) error {
			_, err := Metadata(ctx, c, o, Marks{AddFinalizers: []string{v1beta1.Finalizer}, SetAnnotations: map[string]string{v1beta1.ZoneAnnotation: "example.com"}})
			return err
		},
		"the last mark": func(ctx context.Context, c client.Client, o *v1beta1.ARecord) error {
			_, err := Metadata(ctx, c, o, Marks{RemoveFinalizers: []string{v1beta1.Finalizer}, RemoveAnnotations: []string{v1beta1.ZoneAnnotation}})
			return err
		},
		"a status by apply": func(ctx context.Context, c client.Client, o *v1beta1.ARecord) error {
			return Status(ctx, c, record, o, &v1beta1.RecordStatus{Zone: "example.com"})
		},
		"a whole status": func(ctx context.Context, c client.Client, o *v1beta1.ARecord) error {
			_, err := ReplaceStatus(ctx, c, record, o, &v1beta1.RecordStatus{Zone: "example.com"})
			return err
		},
	} {
		for _, ours := range [][]string{nil, {v1beta1.ZoneAnnotation}, {v1beta1.ZoneAnnotation, v1beta1.FormerNamesAnnotation}} {
			// With no annotation of others but the one that the cache drops, nothing is left beside ours.
			for _, few := range []bool{false, true} {
				stored := &v1beta1.ARecord{ObjectMeta: othersMetadata(ours...)}
				if few {
					delete(stored.Annotations, "example.com/owner")
				}
				kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).WithStatusSubresource(stored).Build()
				read := func() *v1beta1.ARecord {
					o := &v1beta1.ARecord{}
					if err := kube.Get(t.Context(), client.ObjectKeyFromObject(stored), o); err != nil {
						t.Fatal(err)
					}
					return o
				}
				before := withoutOurs(read())
				cached, err := (&intern.Pool{}).Transform(read())
				if err != nil {
					t.Fatal(err)
				}
				if err := write(t.Context(), kube, cached.(*v1beta1.ARecord)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if diff := cmp.Diff(before, withoutOurs(read())); diff != "" {
					t.Errorf("%s, with %d annotations of ours, changes what is not ours (-before +after):\n%s", name, len(ours), diff)
				}
			}
		}
	}
}

// An object that Lockstep applies, and one that is to outlive its children, keeps what others have put on it.
func TestChildKeepsOthersMetadata(t *testing.T) {
	child := configMap("1", nil)
	owner := child.OwnerReferences[0]
	stored := &corev1.ConfigMap{ObjectMeta: othersMetadata(v1beta1.ZoneAnnotation)}
	stored.Namespace, stored.Name = *child.Namespace, *child.Name
	stored.OwnerReferences = append(stored.OwnerReferences, metav1.OwnerReference{APIVersion: *owner.APIVersion, Kind: *owner.Kind, Name: *owner.Name, UID: *owner.UID, Controller: owner.Controller})
	kube := fake.NewClientBuilder().WithObjects(stored).Build()
	before := withoutOurs(stored)
	if err := NewChildren(kube).Apply(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	if err := OutliveChildren(t.Context(), kube, corev1.SchemeGroupVersion.WithKind("ConfigMap"), stored); err != nil {
		t.Fatal(err)
	}
	after := &corev1.ConfigMap{}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(stored), after); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, withoutOurs(after)); diff != "" {
		t.Errorf("an applied object loses what is not ours (-before +after):\n%s", diff)
	}
}

// Marks say what they change, report what the object is afterwards, and cannot name what is not ours.
func TestMarks(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	stored := &v1beta1.ARecord{ObjectMeta: othersMetadata(v1beta1.ZoneAnnotation)}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).Build()
	current := &v1beta1.ARecord{}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(stored), current); err != nil {
		t.Fatal(err)
	}
	same, err := Metadata(t.Context(), kube, current, Marks{AddFinalizers: []string{v1beta1.Finalizer}, SetAnnotations: map[string]string{v1beta1.ZoneAnnotation: "ours"}, RemoveAnnotations: []string{v1beta1.FormerNamesAnnotation}})
	if err != nil || same.GetResourceVersion() != current.ResourceVersion {
		t.Errorf("what makes no difference is written, or fails: %v", err)
	}
	after, err := Metadata(t.Context(), kube, current, Marks{RemoveFinalizers: []string{v1beta1.Finalizer}, RemoveAnnotations: []string{v1beta1.ZoneAnnotation}})
	if err != nil {
		t.Fatal(err)
	}
	if _, there := after.GetAnnotations()[v1beta1.ZoneAnnotation]; there || len(after.GetFinalizers()) != 2 || after.GetResourceVersion() == current.ResourceVersion {
		t.Errorf("afterwards the object is returned with %v and %v", after.GetAnnotations(), after.GetFinalizers())
	}
	if _, err := Metadata(t.Context(), kube, current, Marks{AddFinalizers: []string{v1beta1.Finalizer}, RemoveFinalizers: []string{v1beta1.DependentsFinalizer}, SetAnnotations: map[string]string{v1beta1.ZoneAnnotation: "new"}}); err == nil {
		t.Error("an object that has changed since it was read is overwritten")
	}
	for _, foreign := range []Marks{
		{AddFinalizers: []string{"example.com/a"}}, {RemoveFinalizers: []string{"example.com/a"}},
		{SetAnnotations: map[string]string{"example.com/owner": "x"}}, {RemoveAnnotations: []string{corev1.LastAppliedConfigAnnotation}},
	} {
		if _, err := Metadata(t.Context(), kube, after, foreign); err == nil {
			t.Errorf("%+v is written", foreign)
		}
	}
}

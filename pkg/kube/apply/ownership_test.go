package apply

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// configMap is a child of instance web, the one with the UID.
func configMap(uid types.UID, data map[string]string) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap("web-config", "dns").WithData(data).WithOwnerReferences(
		metav1ac.OwnerReference().WithAPIVersion("bindy.firestoned.io/v1beta1").WithKind("Bind9Instance").WithName("web").WithUID(uid).WithController(true))
}

func owned(uid types.UID, controller bool) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "bindy.firestoned.io/v1beta1", Kind: "Bind9Instance", Name: "web", UID: uid, Controller: new(controller)}}
}

// What others created is neither changed nor taken over; what the owner's own child is, is.
func TestForeignObjectIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		owners  []metav1.OwnerReference
		foreign bool
	}{
		"somebody's":                           {nil, true},
		"another controller's":                 {owned("other", true), true},
		"the owner's, without being its child": {owned("1", false), true},
		"the owner's child":                    {owned("1", true), false},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "web-config", OwnerReferences: c.owners}, Data: map[string]string{"theirs": "1"}}
			kube := fake.NewClientBuilder().WithObjects(before).Build()
			err := NewChildren(kube).Apply(t.Context(), configMap("1", map[string]string{"ours": "1"}))
			var after corev1.ConfigMap
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(before), &after); err != nil {
				t.Fatal(err)
			}
			if errors.Is(err, ErrForeign) != c.foreign || (after.Data["ours"] == "1") == c.foreign || c.foreign && len(after.OwnerReferences) != len(c.owners) {
				t.Errorf("applied: %v, data %v, owners %v", err, after.Data, after.OwnerReferences)
			}
			if c.foreign && !strings.Contains(err.Error(), "ConfigMap dns/web-config: the object exists already and is somebody else's: delete or rename it, or give Bind9Instance web another name") {
				t.Errorf("the error does not say what to do: %v", err)
			}
		})
	}
}

// Somebody who creates the object between the controller's look and its write loses nothing either.
func TestObjectCreatedMeanwhileIsLeftAlone(t *testing.T) {
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "web-config"}, Data: map[string]string{"theirs": "1"}}
	kube := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := c.Create(ctx, theirs.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			return c.Create(ctx, o, options...)
		},
	}).Build()
	if err := NewChildren(kube).Apply(t.Context(), configMap("1", nil)); !errors.Is(err, ErrForeign) {
		t.Errorf("applied over somebody's object: %v", err)
	}
}

// An apply to a child names its UID, so that it fails if the child was replaced since.
func TestApplyNamesTheChild(t *testing.T) {
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "web-config", UID: "mine", OwnerReferences: owned("1", true)}}
	var uids []string
	kube := fake.NewClientBuilder().WithObjects(mine).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			u, err := asUnstructured(o)
			if err != nil {
				return err
			}
			uids = append(uids, string(u.GetUID()))
			return c.Apply(ctx, o, options...)
		},
	}).Build()
	if err := NewChildren(kube).Apply(t.Context(), configMap("1", nil)); err != nil {
		t.Fatal(err)
	}
	if len(uids) != 1 || uids[0] != "mine" {
		t.Errorf("applied to UIDs %q", uids)
	}
}

// A field that the controller set when it created a child goes when a later configuration leaves it out.
func TestFieldsOfCreationAreApplied(t *testing.T) {
	kube := fake.NewClientBuilder().WithReturnManagedFields().Build()
	children := NewChildren(kube)
	for _, data := range []map[string]string{{"first": "1", "second": "1"}, {"second": "2"}} {
		if err := children.Apply(t.Context(), configMap("1", data)); err != nil {
			t.Fatal(err)
		}
	}
	var after corev1.ConfigMap
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: "dns", Name: "web-config"}, &after); err != nil {
		t.Fatal(err)
	}
	if len(after.Data) != 1 || after.Data["second"] != "2" {
		t.Errorf("data %v", after.Data)
	}
}

// An owner gets the garbage collector's finalizer once, and keeps those of others.
func TestOwnersOutliveTheirChildren(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "web", UID: "1", Finalizers: []string{"example.com/mine"}}}
	writes := 0
	kube := fake.NewClientBuilder().WithObjects(owner).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			writes++
			return c.Apply(ctx, o, options...)
		},
	}).Build()
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	for range 2 {
		if err := OutliveChildren(t.Context(), kube, kind, owner); err != nil {
			t.Fatal(err)
		}
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(owner), owner); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"example.com/mine", metav1.FinalizerDeleteDependents}; !slices.Equal(owner.Finalizers, want) || writes != 1 {
		t.Errorf("the finalizers are %v after %d writes, want %v after one", owner.Finalizers, writes, want)
	}
}

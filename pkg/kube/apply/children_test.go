package apply

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// What was applied, and deleted or changed since, is made again or put back by the next look at it, of whatever kind it is.
func TestChildComesBack(t *testing.T) {
	owner := metav1ac.OwnerReference().WithAPIVersion("bindy.firestoned.io/v1beta1").WithKind("Bind9Instance").WithName("web").WithUID("1").WithController(true)
	meta := metav1.ObjectMeta{Namespace: "dns", Name: "web"}
	for name, c := range map[string]struct {
		child  Configuration
		object client.Object
	}{
		"ConfigMap, read by name":  {corev1ac.ConfigMap("web", "dns").WithOwnerReferences(owner).WithLabels(map[string]string{"a": "1"}), &corev1.ConfigMap{ObjectMeta: meta}},
		"Secret, read by name":     {corev1ac.Secret("web", "dns").WithOwnerReferences(owner).WithLabels(map[string]string{"a": "1"}), &corev1.Secret{ObjectMeta: meta}},
		"ServiceAccount, watched":  {corev1ac.ServiceAccount("web", "dns").WithOwnerReferences(owner).WithLabels(map[string]string{"a": "1"}), &corev1.ServiceAccount{ObjectMeta: meta}},
		"Role, without generation": {rbacv1ac.Role("web", "dns").WithOwnerReferences(owner).WithLabels(map[string]string{"a": "1"}), &rbacv1.Role{ObjectMeta: meta}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kube := fake.NewClientBuilder().Build()
				children := NewChildren(kube)
				look := func() {
					t.Helper()
					time.Sleep(RereadAfter) // of the bubble's clock
					if err := children.Apply(t.Context(), c.child); err != nil {
						t.Fatal(err)
					}
					if err := kube.Get(t.Context(), client.ObjectKeyFromObject(c.object), c.object); err != nil {
						t.Fatal(err)
					}
				}
				look()
				first := c.object.GetResourceVersion()
				if look(); c.object.GetResourceVersion() != first {
					t.Error("an unchanged object is written again")
				}
				c.object.SetLabels(map[string]string{"a": "2"})
				if err := kube.Update(t.Context(), c.object); err != nil {
					t.Fatal(err)
				}
				if look(); c.object.GetLabels()["a"] != "1" {
					t.Errorf("labels %v", c.object.GetLabels())
				}
				if err := kube.Delete(t.Context(), c.object); err != nil {
					t.Fatal(err)
				}
				look()
			})
		})
	}
}

// What the cache does not have yet is not written again; what somebody has changed or deleted since is, at once. Whoever goes on changing it
// is answered ever more rarely.
func TestCacheLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := 0
		kube := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				writes++
				o.SetUID(types.UID(strconv.Itoa(writes))) // as kube-apiserver does
				return c.Create(ctx, o, options...)
			},
			Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				writes++
				return c.Apply(ctx, o, options...)
			},
		})
		children := NewChildren(kube)
		apply := func(value string, found client.Object) {
			t.Helper()
			child := corev1ac.Service("web", "dns").WithLabels(map[string]string{"a": value}).WithOwnerReferences(
				metav1ac.OwnerReference().WithAPIVersion("bindy.firestoned.io/v1beta1").WithKind("Bind9Instance").WithName("web").WithUID("1").WithController(true))
			if err := children.ApplyCached(t.Context(), child, value, found); err != nil {
				t.Fatal(err)
			}
		}
		look := func(name, value string, found client.Object, want int) {
			t.Helper()
			writes = 0
			if apply(value, found); writes != want {
				t.Errorf("%s: %d writes, want %d", name, writes, want)
			}
		}
		current := func() *corev1.Service {
			t.Helper()
			var service corev1.Service
			if err := kube.Get(t.Context(), client.ObjectKey{Namespace: "dns", Name: "web"}, &service); err != nil {
				t.Fatal(err)
			}
			return &service
		}
		change := func() *corev1.Service {
			t.Helper()
			service := current()
			service.Spec.ExternalName += "x"
			if err := kube.Update(t.Context(), service); err != nil {
				t.Fatal(err)
			}
			return service
		}
		none := &corev1.Service{}

		look("new", "1", none, 1)
		look("not in the cache yet", "1", none, 0)
		made := current()
		look("there", "1", made, 0)
		look("changed here", "2", made, 1)
		look("as it was before", "2", made, 0)
		look("deleted", "2", none, 1)
		time.Sleep(peace)
		look("changed by others", "2", change(), 1)
		look("changed again at once", "2", change(), 0)
		time.Sleep(repairPause)
		look("changed again", "2", current(), 1)

		time.Sleep(peace)
		writes = 0
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			apply("2", change())
		}
		if writes < 10 || writes > 25 {
			t.Errorf("in a fight of a minute, what others change is put back %d times", writes)
		}
	})
}

// An object of a deleted owner of the same name goes by itself; that of anybody else does not.
func TestPredecessors(t *testing.T) {
	for name, c := range map[string]struct {
		owners []metav1.OwnerReference
		want   string
	}{
		"a former owner's":     {owned("former", true), "the deletion of ConfigMap dns/web-config, which a former Bind9Instance web left"},
		"nobody's":             {nil, ""},
		"another instance's":   {[]metav1.OwnerReference{{Kind: "Bind9Instance", Name: "other", UID: "2", Controller: new(true)}}, ""},
		"of another kind":      {[]metav1.OwnerReference{{Kind: "Deployment", Name: "web", UID: "2", Controller: new(true)}}, ""},
		"the owner's own":      {owned("1", true), ""},
		"not a child's, of it": {owned("former", false), ""},
	} {
		kube := fake.NewClientBuilder().WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "web-config", OwnerReferences: c.owners}}).Build()
		if err := NewChildren(kube).Apply(t.Context(), configMap("1", nil)); Predecessors(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

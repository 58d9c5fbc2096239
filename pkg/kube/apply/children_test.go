package apply

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
					time.Sleep(CacheLag) // of the bubble's clock
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

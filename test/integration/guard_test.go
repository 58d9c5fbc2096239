package integration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// An isolated test can do nothing to what others share, by whatever client.
func TestIsolationIsEnforced(t *testing.T) {
	kube.Isolated(t)
	c, mine := kube.Client(t), kube.Namespace(t, "it")
	pods := &corev1.PodList{}
	if err := c.List(t.Context(), pods, client.InNamespace(system)); err != nil || len(pods.Items) == 0 {
		t.Fatalf("%d pods: %v", len(pods.Items), err)
	}
	for what, err := range map[string]error{
		"deletes a pod of Lockstep":           c.Delete(t.Context(), &pods.Items[0], client.GracePeriodSeconds(0)),
		"creates in another namespace":        c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}),
		"creates a namespace of another name": c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "somebodys"}}),
		"creates a role that all share":       c.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "everybodys"}}),
		"deletes everything in a namespace":   c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(system)),
		"deletes a role that all share":       c.Delete(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}}),
	} {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "an isolated test may not write") {
			t.Errorf("a test that %s gets %v", what, err)
		}
	}
	if out, err := kube.TryKubectl(t, "", "-n", system, "exec", pods.Items[0].Name, "--", "/lockstep"); err == nil || !strings.Contains(out, "an isolated test may not write") {
		t.Errorf("kubectl exec in a pod of Lockstep: %v: %s", err, out)
	}
	for what, err := range map[string]error{
		"in its namespace": c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: mine, Name: "x"}}),
		"named after it":   c.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: mine}}),
	} {
		if err != nil {
			t.Errorf("an object %s: %v", what, err)
		}
	}
	if err := c.Delete(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: mine}}); err != nil {
		t.Error(err)
	}
}

package instance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// The pass over the signer, and over no other instance, makes a Secret for the keys of each zone that is to be signed.
func TestEnsureSigningKeys(t *testing.T) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, v1beta1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	instance := func(name string, role v1beta1.ServerRole, created time.Time) *v1beta1.Bind9Instance {
		i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(created)}}
		i.Labels, i.Spec.Role = map[string]string{"for": "all"}, role
		return i
	}
	zone := func(name, policy string) *v1beta1.DNSZone {
		z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name}}
		z.Spec.ZoneName, z.Spec.DNSSECPolicy = name+".example", policy
		z.Spec.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"for": "all"}}}}
		return z
	}
	now := time.Now().Truncate(time.Second)
	signer, younger, secondary := instance("signer", v1beta1.RolePrimary, now.Add(-time.Hour)), instance("younger", v1beta1.RolePrimary, now), instance("secondary", v1beta1.RoleSecondary, now.Add(-2*time.Hour))
	c := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(signer, younger, secondary, zone("signed", clause.PolicyDefault), zone("plain", ""), zone("none", clause.PolicyNone)).Build()
	w := &workloads{client: c, Options: Options{Children: apply.NewChildren(c)}}
	for _, step := range []struct {
		instance *v1beta1.Bind9Instance
		want     int
	}{{younger, 0}, {secondary, 0}, {signer, 1}} {
		if err := w.ensureSigningKeys(t.Context(), &named.Workload{Instance: step.instance}); err != nil {
			t.Fatal(err)
		}
		for what, list := range map[string]client.ObjectList{"Secrets": &corev1.SecretList{}, "Roles": &rbacv1.RoleList{}, "RoleBindings": &rbacv1.RoleBindingList{}} {
			if err := c.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			if got := meta.LenList(list); got != step.want {
				t.Errorf("%d %s after the pass over %s, want %d", got, what, step.instance.Name, step.want)
			}
		}
	}
}

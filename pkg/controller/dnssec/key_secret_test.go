package dnssec

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/controller/tsigkeys"
	"github.com/lockstep-dns/lockstep/pkg/named"
)

// TestKeysAreTheSigners: of all accounts of a namespace, the signer's is given the one Secret of the zone's keys.
func TestKeysAreTheSigners(t *testing.T) {
	instance := func(name string, role v1beta1.ServerRole) *v1beta1.Bind9Instance {
		return &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name}, Spec: v1beta1.Bind9InstanceSpec{Role: role}}
	}
	instances := []*v1beta1.Bind9Instance{
		instance("a-primary-0", v1beta1.RolePrimary), instance("a-primary-1", v1beta1.RolePrimary), instance("a-secondary-0", v1beta1.RoleSecondary),
	}
	owner := &v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "a", UID: "1"}}
	s := keySecret{name: keySecretName("a", "example.test"), owner: tsigkeys.ClusterOwner(fleet.AsCluster(owner, "")), signer: signerOf(instances)}

	role := s.role()
	if len(role.Rules) != 1 || !slices.Equal(role.Rules[0].Resources, []string{"secrets"}) ||
		!slices.Equal(role.Rules[0].ResourceNames, []string{*s.secret().Name}) || !slices.Equal(role.Rules[0].Verbs, []string{"get", "patch"}) {
		t.Errorf("rules %+v", role.Rules)
	}
	binding := s.binding()
	if *binding.RoleRef.Name != *role.Name || *binding.RoleRef.Kind != "Role" {
		t.Errorf("the binding is to %s %s", *binding.RoleRef.Kind, *binding.RoleRef.Name)
	}
	if len(binding.Subjects) != 1 || *binding.Subjects[0].Kind != "ServiceAccount" {
		t.Fatalf("subjects %+v", binding.Subjects)
	}
	for _, i := range instances {
		runs := named.Workload{Instance: i}.ServiceAccount()
		granted := *binding.Subjects[0].Name == *runs.Name && *binding.Subjects[0].Namespace == *runs.Namespace
		if granted != (i == instances[0]) {
			t.Errorf("the account of %s is given the keys: %t", i.Name, granted)
		}
	}
}

package dnssec

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
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
	zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "z"}, Spec: v1beta1.DNSZoneSpec{ZoneName: "example.test"}}
	s := keySecret{owner: keyrotation.ClusterOwner(inventory.AsCluster(owner, "")), signer: membership.SignerOf(instances)}
	s.name = keySecretName(s.owner, zone)

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

// signedZone is a zone of a namespace, signed by a cluster in namespace dns.
func signedZone(namespace string, signed bool) (Signing, *v1beta1.DNSZone) {
	cluster := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	signer := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "a-primary-0"}}
	zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "z"}, Spec: v1beta1.DNSZoneSpec{ZoneName: "example.test"}}
	if signed {
		zone.Status.DNSSEC = &v1beta1.DNSSECStatus{Signed: true}
	}
	return Signing{Policy: "default", Signer: signer, export: true, owner: keyrotation.ClusterOwner(inventory.AsCluster(cluster, "dns"))}, zone
}

// The keys of a deleted zone are for the next zone of that name in the same namespace, and for no other.
func TestKeysStayInTheNamespace(t *testing.T) {
	kube := fake.NewClientBuilder().Build()
	ensure := func(namespace string, signed bool) *corev1.Secret {
		t.Helper()
		signing, zone := signedZone(namespace, signed)
		if err := signing.EnsureKeySecret(t.Context(), kube, apply.NewChildren(kube), zone); err != nil {
			t.Fatal(err)
		}
		var secret corev1.Secret
		if err := kube.Get(t.Context(), client.ObjectKey{Namespace: "dns", Name: signing.KeySecretName(zone)}, &secret); err != nil {
			t.Fatal(err)
		}
		return &secret
	}
	for _, namespace := range []string{"dns", "victim"} {
		secret := ensure(namespace, false)
		secret.Data = map[string][]byte{"013-12345.private": []byte("key of " + namespace)}
		if err := kube.Update(t.Context(), secret, client.FieldOwner("bindcar")); err != nil {
			t.Fatal(err)
		}
		if again := ensure(namespace, false); string(again.Data["013-12345.private"]) != "key of "+namespace {
			t.Errorf("a zone that is created again in namespace %s has the keys %s", namespace, again.Data)
		}
		if stolen := ensure("attacker", false); len(stolen.Data) > 0 {
			t.Errorf("a zone of another namespace has the keys %s", stolen.Data)
		}
	}
	// A zone that was signed by an earlier version goes on with its keys, which were kept under the zone's name alone.
	if upgraded := ensure("upgraded", true); string(upgraded.Data["013-12345.private"]) != "key of dns" {
		t.Errorf("a zone that is signed already has the keys %s", upgraded.Data)
	}
}

// A Secret that a user made is used if it names the zone, and is not changed.
func TestUsersKeysNeedConsent(t *testing.T) {
	signing, zone := signedZone("dns", false)
	for annotation, want := range map[string]bool{"": false, "other.test": false, "example.test": true} {
		theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "dns", Name: signing.KeySecretName(zone), Annotations: map[string]string{v1beta1.ZoneAnnotation: annotation},
		}}
		kube := fake.NewClientBuilder().WithObjects(theirs).Build()
		err := signing.EnsureKeySecret(t.Context(), kube, apply.NewChildren(kube), zone)
		if (err == nil) != want || !want && !strings.Contains(err.Error(), "annotate it with bindy.firestoned.io/zone=example.test") {
			t.Errorf("annotated %q: %v", annotation, err)
		}
		var after corev1.Secret
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(theirs), &after); err != nil || len(after.OwnerReferences) > 0 {
			t.Errorf("annotated %q: it has the owners %v, %v", annotation, after.OwnerReferences, err)
		}
	}
}

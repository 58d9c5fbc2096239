package dnssec

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// Of a cluster, an instance and a zone, the last that says how the zone is signed counts, in each pair.
func TestZoneGoesBeforeServers(t *testing.T) {
	signing := func(policy string) *v1beta1.Bind9Config {
		if policy == "" {
			return nil
		}
		return &v1beta1.Bind9Config{DNSSEC: &v1beta1.DNSSECConfig{Signing: &v1beta1.DNSSECSigningConfig{Enabled: policy != "none", Policy: policy}}}
	}
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ cluster, instance, zone, want string }{
		{"", "", "", ""},
		{"one", "", "", "one"},
		{"", "one", "", "one"},
		{"", "", "one", "one"},
		{"one", "two", "", "two"},
		{"one", "none", "", ""},
		{"none", "two", "", "two"},
		{"one", "", "two", "two"},
		{"", "one", "two", "two"},
		{"none", "", "two", "two"},
		{"", "none", "two", "two"},
		{"one", "", "none", ""},
		{"", "one", "none", ""},
		{"one", "two", "three", "three"},
	} {
		cluster := &v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "c"}}
		cluster.Spec.Global = signing(c.cluster)
		primary := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "a"}}
		primary.Spec.ClusterRef, primary.Spec.Role, primary.Spec.Config = "c", v1beta1.RolePrimary, signing(c.instance)
		zone := &v1beta1.DNSZone{}
		zone.Spec.DNSSECPolicy = c.zone
		s, err := SigningOf(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster).Build(), zone, []*v1beta1.Bind9Instance{primary}, "dns")
		if err != nil || s.Policy != c.want {
			t.Errorf("cluster %q, instance %q, zone %q: %q, %v; want %q", c.cluster, c.instance, c.zone, s.Policy, err, c.want)
		}
	}
}

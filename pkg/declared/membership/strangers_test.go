package membership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

func TestStrangers(t *testing.T) {
	global := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "shared", UID: "live"}}
	global.Spec.Namespace = "platform"
	f := NewFleet(FleetObjects{Clusters: []*v1beta1.Bind9GlobalCluster{global}}, "home")
	instance := func(namespace, name string, role v1beta1.ServerRole, owners ...metav1.OwnerReference) *v1beta1.Bind9Instance {
		i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owners}}
		i.Spec.Role = role
		return i
	}
	owner := metav1.OwnerReference{APIVersion: v1beta1.GroupName + "/v1beta1", Kind: "Bind9GlobalCluster", Name: "shared", UID: "live"}
	own, member := instance("team", "own", v1beta1.RolePrimary), instance("platform", "member", v1beta1.RolePrimary, owner)
	one, two := instance("one", "one", v1beta1.RolePrimary), instance("two", "two", v1beta1.RolePrimary)
	secondary := instance("one", "secondary", v1beta1.RoleSecondary)
	for name, tc := range map[string]struct {
		clusterRef string
		serving    []*v1beta1.Bind9Instance
		want       []string
	}{
		"own and elsewhere":         {"", []*v1beta1.Bind9Instance{own, one, secondary}, []string{"one", "secondary"}},
		"a cluster that it names":   {"shared", []*v1beta1.Bind9Instance{member, one}, []string{"one"}},
		"a cluster that it doesn't": {"", []*v1beta1.Bind9Instance{own, member}, []string{"member"}},
		"all in one namespace":      {"", []*v1beta1.Bind9Instance{one, secondary}, nil},
		"in two namespaces":         {"", []*v1beta1.Bind9Instance{one, two}, []string{"one", "two"}},
	} {
		t.Run(name, func(t *testing.T) {
			zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "zone"}}
			zone.Spec.ClusterRef = tc.clusterRef
			var got []string
			for _, i := range f.Strangers(zone, tc.serving) {
				got = append(got, i.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

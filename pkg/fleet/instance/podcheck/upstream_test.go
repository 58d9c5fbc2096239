package podcheck

import (
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
)

// A secondary's missing zone is the primary's fault only when no primary is ready.
func TestZoneWithoutPrimary(t *testing.T) {
	zone := &v1beta1.DNSZone{}
	zone.Namespace, zone.Spec.ZoneName, zone.Spec.ClusterRef = "team", "example.com", "dns"
	server := func(name string, role v1beta1.ServerRole, ready int32) *v1beta1.Bind9Instance {
		i := &v1beta1.Bind9Instance{}
		i.Namespace, i.Name, i.Spec.ClusterRef, i.Spec.Role, i.Status.ReadyReplicas = "team", name, "dns", role, ready
		return i
	}
	secondary := server("secondary", "Secondary", 1)
	for name, c := range map[string]struct {
		instances []*v1beta1.Bind9Instance
		want      bool
	}{
		"none is ready":   {[]*v1beta1.Bind9Instance{server("a", "Primary", 0), server("b", "primary", 0), secondary}, true},
		"one is ready":    {[]*v1beta1.Bind9Instance{server("a", "primary", 0), server("b", "primary", 1), secondary}, false},
		"none is at hand": {[]*v1beta1.Bind9Instance{secondary}, false},
	} {
		if got := zoneWithoutPrimary([]*v1beta1.DNSZone{zone}, membership.NewFleet(membership.FleetObjects{Instances: c.instances}, "")) != nil; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

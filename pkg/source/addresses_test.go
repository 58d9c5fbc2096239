package source

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

func TestServiceAddresses(t *testing.T) {
	instance := func(role v1beta1.ServerRole, address string) *v1beta1.Bind9Instance {
		i := &v1beta1.Bind9Instance{}
		i.Spec.Role, i.Status.ServiceAddress = role, address
		return i
	}
	instances := []*v1beta1.Bind9Instance{
		instance("Primary", "10.96.0.2"), instance("secondary", "10.96.0.3"), instance("primary", ""), instance("primary", "fd00::1"),
	}
	for role, want := range map[v1beta1.ServerRole][]string{
		v1beta1.RolePrimary: {"10.96.0.2", "fd00::1"}, v1beta1.RoleSecondary: {"10.96.0.3"},
	} {
		var addresses []netip.Addr
		for _, s := range want {
			addresses = append(addresses, netip.MustParseAddr(s))
		}
		if got := ServiceAddresses(instances, role); !slices.Equal(got, addresses) {
			t.Errorf("%s: %v, want %v", role, got, addresses)
		}
	}
}

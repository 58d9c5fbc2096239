package membership

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func instance(namespace, name, cluster string) *v1beta1.Bind9Instance {
	return &v1beta1.Bind9Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": cluster}},
		Spec:       v1beta1.Bind9InstanceSpec{ClusterRef: cluster},
	}
}

func owned(i *v1beta1.Bind9Instance, kind string) *v1beta1.Bind9Instance {
	i.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: kind, Name: i.Spec.ClusterRef, UID: types.UID(i.Spec.ClusterRef)}}
	return i
}

func allowing(i *v1beta1.Bind9Instance, namespaces string) *v1beta1.Bind9Instance {
	i.Annotations = map[string]string{v1beta1.AllowZoneNamespacesAnnotation: namespaces}
	return i
}

// forged gives an owner reference the UID of no object.
func forged(i *v1beta1.Bind9Instance) *v1beta1.Bind9Instance {
	i.OwnerReferences[0].UID = "00000000-0000-0000-0000-000000000000"
	return i
}

// global returns a cluster whose UID is its name, with its instances in a namespace.
func global(name, namespace string) *v1beta1.Bind9GlobalCluster {
	return &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1beta1.GlobalClusterSpec{Namespace: namespace}}
}

func TestInstancesOf(t *testing.T) {
	all := []*v1beta1.Bind9Instance{
		instance("dns", "prod-primary-10", "prod"), instance("dns", "prod-primary-2", "prod"),
		instance("dns", "prod-secondary-0", "prod"), instance("dns", "alone", ""),
		instance("other", "prod-primary-0", "prod"),
		owned(instance("infra", "global-primary-0", "global"), "Bind9GlobalCluster"),
		owned(instance("infra", "edge-primary-0", "edge"), "ClusterBind9Provider"),
		owned(instance("evil", "global-primary-0", "global"), "Bind9Cluster"),
		// Forged: in another namespace than the cluster's instances, with another UID, of a cluster that does not exist.
		owned(instance("evil", "global-primary-1", "global"), "Bind9GlobalCluster"),
		forged(owned(instance("infra", "global-primary-1", "global"), "Bind9GlobalCluster")),
		owned(instance("home", "gone-primary-0", "gone"), "Bind9GlobalCluster"),
		allowing(instance("shared", "open", "x"), "*"), allowing(instance("shared", "ours", "x"), "web, dns"),
		allowing(instance("shared", "theirs", "x"), "dns2"),
		allowing(instance("lure", "open", "x"), "*"),
		owned(instance("home", "athome-primary-0", "athome"), "Bind9GlobalCluster"),
	}
	fleet := NewFleet(FleetObjects{
		Instances: all, Clusters: []*v1beta1.Bind9GlobalCluster{global("global", "infra"), global("athome", "")},
		Providers: []*v1beta1.ClusterBind9Provider{{ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "edge"}, Spec: v1beta1.GlobalClusterSpec{Namespace: "infra"}}},
	}, "home")
	byApp := func(app string) func(*v1beta1.DNSZoneSpec) {
		return func(s *v1beta1.DNSZoneSpec) {
			s.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
		}
	}
	for name, test := range map[string]struct {
		spec func(*v1beta1.DNSZoneSpec)
		want []string
	}{
		"none":               {func(*v1beta1.DNSZoneSpec) {}, nil},
		"cluster":            {func(s *v1beta1.DNSZoneSpec) { s.ClusterRef = "prod" }, []string{"dns/prod-primary-2", "dns/prod-primary-10", "dns/prod-secondary-0"}},
		"global cluster":     {func(s *v1beta1.DNSZoneSpec) { s.ClusterRef = "global" }, []string{"infra/global-primary-0"}},
		"cluster provider":   {func(s *v1beta1.DNSZoneSpec) { s.ClusterProviderRef = "edge" }, []string{"infra/edge-primary-0"}},
		"no cluster by that": {func(s *v1beta1.DNSZoneSpec) { s.ClusterProviderRef = "prod" }, nil},
		"selected":           {byApp(""), []string{"dns/alone"}},
		"home":               {func(s *v1beta1.DNSZoneSpec) { s.ClusterRef = "athome" }, []string{"home/athome-primary-0"}},
		"cluster is gone":    {func(s *v1beta1.DNSZoneSpec) { s.ClusterRef, s.ClusterProviderRef = "gone", "gone" }, nil},
		"allowed elsewhere":  {byApp("x"), []string{"shared/open", "shared/ours"}},
		"union": {func(s *v1beta1.DNSZoneSpec) {
			s.ClusterRef, s.ClusterProviderRef = "prod", "edge"
			byApp("prod")(s)
		}, []string{"dns/prod-primary-2", "dns/prod-primary-10", "dns/prod-secondary-0", "infra/edge-primary-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			zone := exampleZone()
			zone.Annotations = map[string]string{v1beta1.AllowInstanceNamespacesAnnotation: "shared, other"}
			test.spec(&zone.Spec)
			var got []string
			for _, i := range fleet.InstancesOf(zone) {
				got = append(got, i.Namespace+"/"+i.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

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

// Clients outside of the Kubernetes cluster reach none but the servers that are open to them.
func TestNameServers(t *testing.T) {
	instance := func(name string, role v1beta1.ServerRole, exposed bool, addresses ...string) *v1beta1.Bind9Instance {
		i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name}}
		i.Spec.Role, i.Status.ServiceAddress = role, "10.96.0.1"
		i.Status.ServiceAddresses, i.Status.ServiceExposed = addresses, exposed
		return i
	}
	for name, test := range map[string]struct {
		instances []*v1beta1.Bind9Instance
		want      string
	}{
		"inside":       {[]*v1beta1.Bind9Instance{instance("b", "secondary", false, "10.96.0.2"), instance("p", "primary", false, "10.96.0.3", "fd00::3")}, "[{dns/p true [10.96.0.3 fd00::3] false} {dns/b false [10.96.0.2] false}]"},
		"older status": {[]*v1beta1.Bind9Instance{instance("p", "primary", false)}, "[{dns/p true [10.96.0.1] false}]"},
		"hidden primary": {
			[]*v1beta1.Bind9Instance{instance("p", "primary", false, "10.96.0.3"), instance("b", "secondary", true), instance("c", "secondary", true, "203.0.113.2")},
			"[{dns/b false [] true} {dns/c false [203.0.113.2] true}]",
		},
	} {
		if got := fmt.Sprint(NameServers(test.instances)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// A zone has as many records of one name and type as the server takes that takes the fewest. Whoever may read that is told which it is.
func TestRecordLimit(t *testing.T) {
	instance := func(namespace, name, cluster string, most int32) *v1beta1.Bind9Instance {
		return &v1beta1.Bind9Instance{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       v1beta1.Bind9InstanceSpec{ClusterRef: cluster}, Status: v1beta1.Bind9InstanceStatus{MaxRecordsPerType: most},
		}
	}
	provider := func(most *int32) []*v1beta1.DNSProvider {
		return []*v1beta1.DNSProvider{{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "office", UID: "p"}, Spec: v1beta1.DNSProviderSpec{MaxRecordsPerType: most}}}
	}
	const would = "www. A would have 4000 values, and "
	for name, test := range map[string]struct {
		instances []*v1beta1.Bind9Instance
		providers []*v1beta1.DNSProvider
		max       int
		says      string
	}{
		"no servers":         {nil, nil, 0, would + "the zone's servers take at most 100 of one name and type; those who run them can raise maxRecordsPerType"},
		"all new":            {[]*v1beta1.Bind9Instance{instance("dns", "a", "", 0)}, nil, 0, would + "the zone's servers take at most 100"},
		"one new":            {[]*v1beta1.Bind9Instance{instance("dns", "a", "", 0), instance("dns", "b", "", 300)}, nil, 300, would + "Bind9Instance dns/b takes at most 300 of one name and type; raise spec.config.maxRecordsPerType there"},
		"a missing provider": {[]*v1beta1.Bind9Instance{instance("dns", "a", "", 300)}, []*v1beta1.DNSProvider{{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "x"}}}, 300, would + "Bind9Instance dns/a takes"},
		"the lowest":         {[]*v1beta1.Bind9Instance{instance("dns", "a", "c", 300), instance("dns", "b", "c", 200)}, nil, 200, would + "Bind9Instance dns/b takes at most 200 of one name and type; raise spec.global.maxRecordsPerType of its cluster c, or spec.config.maxRecordsPerType there"},
		"a provider":         {[]*v1beta1.Bind9Instance{instance("dns", "a", "", 300)}, provider(nil), 100, would + "DNSProvider dns/office takes at most 100 of one name and type; raise spec.maxRecordsPerType there, if its servers take more"},
		"a raised provider":  {[]*v1beta1.Bind9Instance{instance("dns", "a", "", 300)}, provider(new(int32(4000))), 300, would + "Bind9Instance dns/a takes"},
		"of others":          {[]*v1beta1.Bind9Instance{instance("lockstep-system", "secret", "platform", 200)}, nil, 200, would + "the zone's servers take at most 200 of one name and type; those who run them can raise maxRecordsPerType"},
	} {
		l := ContentOptions(test.instances, test.providers).MaxRecords
		says := l.Excess(rrset.Key{Name: "www.", Type: dns.TypeA}, 4000, 0, "dns")
		if l.Max != test.max || !strings.HasPrefix(says, test.says) {
			t.Errorf("%s: %d, want %d; %q", name, l.Max, test.max, says)
		}
	}
	says := source.RecordLimit{}.Excess(rrset.Key{Name: "www.", Type: dns.TypeA}, 120, 0, "")
	if want := "www. A would have 120 values, and the zone's servers take at most 100"; !strings.HasPrefix(says, want) {
		t.Errorf("to a reader in no namespace: %q, want %q", says, want)
	}
}

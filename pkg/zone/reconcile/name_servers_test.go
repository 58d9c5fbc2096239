package reconcile

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// The addresses of name servers follow those of load balancers, each in one update, which the outcome names. While there is none at all, the
// zone says whose is missing and stays as it is.
func TestNameServersFollowLoadBalancers(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	r.zone = r.zone.DeepCopy()
	r.zone.Spec.NameServerIPs, r.zone.Spec.NameServers = nil, []v1beta1.NameServer{{Hostname: "ns2"}}
	r.zone.Generation++
	r.zones.Set(r.zone)
	for step, test := range []struct {
		primary, secondary []string // addresses
		names              []string
		a                  map[string][]string
		problem            string
		changes            string
	}{
		{
			primary: []string{"203.0.113.1"}, secondary: []string{"203.0.113.2", "2001:db8::2"}, names: []string{"ns1.example.test.", "ns2.example.test."},
			a: map[string][]string{"ns1 A": {"203.0.113.1"}, "ns2 A": {"203.0.113.2"}, "ns2 AAAA": {"2001:db8::2"}},
		},
		{
			primary: []string{"203.0.113.9"}, secondary: []string{"203.0.113.2", "2001:db8::2"}, names: []string{"ns1.example.test.", "ns2.example.test."},
			a:       map[string][]string{"ns1 A": {"203.0.113.9"}, "ns2 A": {"203.0.113.2"}, "ns2 AAAA": {"2001:db8::2"}},
			changes: "ns1.example.test. A 203.0.113.9 instead of 203.0.113.1",
		},
		{
			primary: []string{"203.0.113.9"}, names: []string{"ns1.example.test."}, a: map[string][]string{"ns1 A": {"203.0.113.9"}},
			changes: "example.test. NS ns1.example.test. instead of ns1.example.test., ns2.example.test.; " +
				"ns2.example.test. A none instead of 203.0.113.2; ns2.example.test. AAAA none instead of 2001:db8::2",
		},
		{
			names: []string{"ns1.example.test."}, a: map[string][]string{"ns1 A": {"203.0.113.9"}},
			problem: "AddressPending: Service dns/primary-0 has no address yet",
		},
		{
			primary: []string{"203.0.113.1"}, names: []string{"ns1.example.test."}, a: map[string][]string{"ns1 A": {"203.0.113.1"}},
			changes: "ns1.example.test. A 203.0.113.1 instead of 203.0.113.9",
		},
	} {
		for i, addresses := range [][]string{test.primary, test.secondary} {
			s := &r.scope.instances[i].Status
			s.ServiceAddresses, s.ServiceExposed = addresses, true
		}
		before := r.look(r.primary[0]).SOA.Serial
		p := r.pass()
		after := r.look(r.primary[0])
		if verdict := p.event.Problem; verdict.Holds() != (test.problem == "") || !strings.HasPrefix(verdict.Reason+": "+verdict.Message, test.problem) {
			t.Fatalf("%d: %v, want %q", step, verdict, test.problem)
		}
		want := uint32(1)
		if test.problem != "" {
			want = 0
		}
		if grown := after.SOA.Serial - before; step > 0 && grown != want {
			t.Errorf("%d: %d updates, want %d", step, grown, want)
		}
		set, _ := after.Get(rrset.Key{Name: rigZone, Type: dns.TypeNS})
		if diff := cmp.Diff(test.names, set.Rdata); diff != "" {
			t.Errorf("%d: names: %s", step, diff)
		}
		got := map[string][]string{}
		for _, host := range []string{"ns1", "ns2"} {
			for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
				if set, ok := after.Get(rrset.Key{Name: host + "." + rigZone, Type: kind}); ok {
					got[host+" "+dns.TypeToString[kind]] = set.Rdata
				}
			}
		}
		if !maps.EqualFunc(got, test.a, slices.Equal) {
			t.Errorf("%d: addresses %v, want %v", step, got, test.a)
		}
		if p.event.NameServers != test.changes {
			t.Errorf("%d: %q, want %q", step, p.event.NameServers, test.changes)
		}
	}
}

// A zone that gets its first servers has no former addresses, and one that loses them publishes none.
func TestFirstAddressesAreNoChange(t *testing.T) {
	zone := &v1beta1.DNSZone{}
	zone.Spec.ZoneName, zone.Spec.SOARecord.PrimaryNS, zone.Spec.SOARecord.AdminEmail = "example.test", "ns1.example.test.", "admin@example.test"
	state := &zoneState{}
	for step, test := range []struct{ address, want string }{
		{"", ""}, {"192.0.2.1", ""}, {"", ""}, {"192.0.2.2", "ns1.example.test. A 192.0.2.2 instead of 192.0.2.1"},
	} {
		var servers []source.Server
		if test.address != "" {
			servers = []source.Server{{Service: "dns/primary-0", Primary: true, Addresses: []netip.Addr{netip.MustParseAddr(test.address)}}}
		}
		desired, err := source.Build(zone, nil, source.Options{Servers: servers})
		if err != nil {
			t.Fatal(err)
		}
		if got := state.notePublished(desired, len(servers) > 0, true); got != test.want {
			t.Errorf("%d: %q, want %q", step, got, test.want)
		}
	}
}

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
// zone says whose is missing, and its name servers stay as they are.
func TestNameServersFollowLoadBalancers(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	r.zone = r.zone.DeepCopy()
	r.zone.Spec.NameServerIPs, r.zone.Spec.NameServers = nil, []v1beta1.NameServer{{Hostname: "ns2"}}
	r.zone.Status.Serial = new(int64) // It was on a server before.
	r.zone.Generation++
	r.zones.Set(r.zone)
	for step, test := range []struct {
		primary, secondary []string // addresses
		names              []string
		a                  map[string][]string
		pending            string
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
			pending: "AddressPending: Service dns/primary-0 has no address yet",
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
		if !p.event.Programmed.Holds() {
			t.Fatalf("%d: %v", step, p.event.Programmed)
		}
		verdict, waits := p.event.Unprogrammed[rrset.Key{Name: rigZone, Type: dns.TypeNS}]
		if waits != (test.pending != "") || !strings.HasPrefix(verdict.Reason+": "+verdict.Message, test.pending) {
			t.Fatalf("%d: %v, want %q", step, verdict, test.pending)
		}
		want := uint32(1)
		if test.pending != "" {
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

// While no address of a zone's name servers is known, these stay as they are, also if they are to be others, and everything else is published.
// A zone that is on no server waits.
func TestRecordsDoNotWaitForAddresses(t *testing.T) {
	for name, primaries := range map[string]int{"one primary": 1, "two primaries": 2} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, primaries, bind.Zone{})
			expose := func(addresses ...string) {
				for _, i := range r.scope.instances {
					i.Status.ServiceAddresses, i.Status.ServiceExposed = addresses, true
				}
			}
			respec := func(change func(*v1beta1.DNSZone)) {
				r.zone = r.zone.DeepCopy()
				change(r.zone)
				r.zone.Generation++
				r.zones.Set(r.zone)
			}
			respec(func(z *v1beta1.DNSZone) {
				z.Spec.NameServerIPs, z.Annotations = nil, map[string]string{v1beta1.PruneAnnotation: "true"}
			})
			expose()
			if p := r.pass(); p.event.Programmed.Reason != "AddressPending" {
				t.Fatalf("a zone that was on no server: %v", p.event.Programmed)
			}
			expose("203.0.113.1")
			serial := int64(r.mustSync().event.Serial)
			respec(func(z *v1beta1.DNSZone) { z.Status.Serial, z.Spec.SOARecord.PrimaryNS = &serial, "ns9.example.test." })
			expose()
			r.zones.Set(r.a("www", 1, "192.0.2.7"))
			p := r.pass()
			if v := p.event.Unprogrammed[rrset.Key{Name: rigZone, Type: dns.TypeNS}]; !p.event.Programmed.Holds() || v.Reason != "AddressPending" || len(p.event.Unprogrammed) != 1 || p.event.Foreign > 0 {
				t.Fatalf("%v; %v, %d foreign", p.event.Programmed, p.event.Unprogrammed, p.event.Foreign)
			}
			for _, s := range r.primary {
				m := r.look(s)
				ns, _ := m.Get(rrset.Key{Name: rigZone, Type: dns.TypeNS})
				a, _ := m.Get(rrset.Key{Name: "ns1." + rigZone, Type: dns.TypeA})
				www, _ := m.Get(rrset.Key{Name: "www." + rigZone, Type: dns.TypeA})
				if !slices.Equal(ns.Rdata, []string{"ns1.example.test."}) || !slices.Equal(a.Rdata, []string{"203.0.113.1"}) || !slices.Equal(www.Rdata, []string{"192.0.2.7"}) {
					t.Errorf("while it waits: NS %v, ns1 A %v, www A %v", ns.Rdata, a.Rdata, www.Rdata)
				}
			}
			expose("203.0.113.2")
			r.mustSync()
			for _, s := range r.primary {
				m := r.look(s)
				ns, _ := m.Get(rrset.Key{Name: rigZone, Type: dns.TypeNS})
				_, old := m.Get(rrset.Key{Name: "ns1." + rigZone, Type: dns.TypeA})
				a, _ := m.Get(rrset.Key{Name: "ns9." + rigZone, Type: dns.TypeA})
				if !slices.Equal(ns.Rdata, []string{"ns9.example.test."}) || old || !slices.Equal(a.Rdata, []string{"203.0.113.2"}) {
					t.Errorf("afterwards: NS %v, ns1 there: %t, ns9 A %v", ns.Rdata, old, a.Rdata)
				}
			}
		})
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

package source

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func zoneWith(change func(*v1beta1.DNSZoneSpec)) *v1beta1.DNSZone {
	z := exampleZone()
	change(&z.Spec)
	return z
}

// sets gives the RRsets of a zone as lines, sorted.
func lines(z *Zone) []string {
	var sets []rrset.RRset
	for s := range z.All() {
		sets = append(sets, s)
	}
	return sortedLines(sets)
}

// exposed is a server whose Service is open to the outside.
func exposed(service string, addresses ...string) Server {
	s := Server{Service: service, Exposed: true}
	for _, a := range addresses {
		s.Addresses = append(s.Addresses, netip.MustParseAddr(a))
	}
	return s
}

// threeServers are a primary and two secondaries that are open to the Kubernetes cluster alone.
var threeServers = Options{Servers: []Server{
	{Service: "dns/a", Primary: true, Addresses: []netip.Addr{netip.MustParseAddr("10.96.0.1")}},
	{Service: "dns/b", Addresses: []netip.Addr{netip.MustParseAddr("10.96.0.2")}},
	{Service: "dns/c", Addresses: []netip.Addr{netip.MustParseAddr("10.96.0.3")}},
}}

func TestBuildApex(t *testing.T) {
	ttl, zero := int64(60), int64(0)
	server := netip.MustParseAddr("10.96.0.1")
	for name, test := range map[string]struct {
		spec    func(*v1beta1.DNSZoneSpec)
		records []v1beta1.Record
		options Options
		soa     rrset.SOA
		want    []string
		// What is said about name servers.
		remark, waiting string
		pending         []string
	}{
		"defaults": {
			spec: func(*v1beta1.DNSZoneSpec) {},
			soa:  rrset.SOA{MName: "ns1.example.net.", RName: "admin.example.com.", Refresh: 3600, Retry: 600, Expire: 604800, Minimum: 86400, TTL: 3600},
			want: []string{"example.com. 3600 NS ns1.example.net."},
		},
		"all values": {
			spec: func(s *v1beta1.DNSZoneSpec) {
				s.TTL = &ttl
				s.SOARecord = v1beta1.SOARecord{PrimaryNS: "NS.example.net.", AdminEmail: "a.b@c.", Serial: 4294967295, Refresh: 1, Retry: 2, Expire: 3, NegativeTTL: &zero}
			},
			soa:  rrset.SOA{MName: "ns.example.net.", RName: `a\.b.c.`, Serial: 4294967295, Refresh: 1, Retry: 2, Expire: 3, TTL: 60},
			want: []string{"example.com. 60 NS ns.example.net."},
		},
		"name servers with addresses": {
			spec: func(s *v1beta1.DNSZoneSpec) {
				s.NameServers = []v1beta1.NameServer{
					{Hostname: "ns1.example.com.", IPv4Address: "192.0.2.1", IPv6Address: "2001:db8::1"},
					{Hostname: "ns2", IPv4Address: "192.0.2.2"},
					{Hostname: "ns.example.org.", IPv4Address: "192.0.2.3"}, // Outside: the address is that zone's affair.
				}
			},
			options: Options{Servers: []Server{{Service: "dns/primary", Primary: true, Addresses: []netip.Addr{server}}}},
			want: []string{
				"example.com. 3600 NS ns.example.org., ns1.example.com., ns1.example.net., ns2.example.com.",
				"ns1.example.com. 3600 A 192.0.2.1", "ns1.example.com. 3600 AAAA 2001:db8::1", "ns2.example.com. 3600 A 192.0.2.2",
			},
		},
		"hidden primary": {
			spec: func(s *v1beta1.DNSZoneSpec) {
				s.SOARecord.PrimaryNS, s.SOARecord.HiddenPrimary = "hidden.example.com.", true
				s.NameServers = []v1beta1.NameServer{{Hostname: "ns1.example.com.", IPv4Address: "192.0.2.1"}}
				s.NameServerIPs = map[string]string{"ns2.example.com.": "2001:db8::2"}
			},
			options: Options{Servers: []Server{{Service: "dns/primary", Primary: true, Addresses: []netip.Addr{server}}}},
			want: []string{
				"example.com. 3600 NS ns1.example.com., ns2.example.com.",
				"ns1.example.com. 3600 A 192.0.2.1", "ns2.example.com. 3600 AAAA 2001:db8::2",
			},
			soa: rrset.SOA{MName: "hidden.example.com.", RName: "admin.example.com.", Refresh: 3600, Retry: 600, Expire: 604800, Minimum: 86400, TTL: 3600},
		},
		"older form of addresses": {
			spec: func(s *v1beta1.DNSZoneSpec) {
				s.SOARecord.PrimaryNS = "ns1.example.com."
				s.NameServerIPs = map[string]string{"ns1.example.com.": "192.0.2.1", "ns2.example.com.": "2001:db8::2"}
			},
			want: []string{
				"example.com. 3600 NS ns1.example.com., ns2.example.com.",
				"ns1.example.com. 3600 A 192.0.2.1", "ns2.example.com. 3600 AAAA 2001:db8::2",
			},
		},
		"in-zone name server without address": {
			spec:    func(s *v1beta1.DNSZoneSpec) { s.SOARecord.PrimaryNS = "ns1.example.com." },
			options: Options{Servers: []Server{{Service: "dns/primary", Primary: true, Addresses: []netip.Addr{server, netip.MustParseAddr("fd00::1")}}}},
			want: []string{
				"example.com. 3600 NS ns1.example.com.", "ns1.example.com. 3600 A 10.96.0.1", "ns1.example.com. 3600 AAAA fd00::1",
			},
		},
		"three names, three servers": {
			spec: func(s *v1beta1.DNSZoneSpec) {
				s.SOARecord.PrimaryNS = "ns1.example.com."
				s.NameServers = []v1beta1.NameServer{{Hostname: "ns2"}, {Hostname: "ns3"}}
			},
			options: threeServers,
			want: []string{
				"example.com. 3600 NS ns1.example.com., ns2.example.com., ns3.example.com.",
				"ns1.example.com. 3600 A 10.96.0.1", "ns2.example.com. 3600 A 10.96.0.2", "ns3.example.com. 3600 A 10.96.0.3",
			},
		},
		"one name, three servers": {
			spec:    func(s *v1beta1.DNSZoneSpec) { s.SOARecord.PrimaryNS = "ns1.example.com." },
			options: threeServers,
			want:    []string{"example.com. 3600 NS ns1.example.com.", "ns1.example.com. 3600 A 10.96.0.1"},
		},
		"more names than servers": {
			spec: func(s *v1beta1.DNSZoneSpec) {
				s.SOARecord.PrimaryNS = "ns1.example.com."
				s.NameServers = []v1beta1.NameServer{{Hostname: "ns2"}, {Hostname: "ns3", IPv4Address: "192.0.2.1"}}
			},
			options: Options{Servers: threeServers.Servers[:1]},
			want: []string{
				"example.com. 3600 NS ns1.example.com., ns2.example.com., ns3.example.com.",
				"ns1.example.com. 3600 A 10.96.0.1", "ns2.example.com. 3600 A 10.96.0.1", "ns3.example.com. 3600 A 192.0.2.1",
			},
			remark: "ns1.example.com. and ns2.example.com. have one address, 10.96.0.1, and fail together (RFC 2182 section 3.1)",
		},
		"all that are open to the outside": {
			spec:    func(s *v1beta1.DNSZoneSpec) { s.SOARecord.PrimaryNS = "ns1.example.com." },
			options: Options{Servers: []Server{exposed("dns/a", "203.0.113.1", "2001:db8::1"), exposed("dns/b", "203.0.113.2")}},
			want: []string{
				"example.com. 3600 NS ns1.example.com.", "ns1.example.com. 3600 A 203.0.113.1, 203.0.113.2", "ns1.example.com. 3600 AAAA 2001:db8::1",
			},
		},
		"no address yet": {
			spec: func(s *v1beta1.DNSZoneSpec) {
				s.SOARecord.PrimaryNS = "ns1.example.com."
				s.NameServers = []v1beta1.NameServer{{Hostname: "ns2"}}
			},
			options: Options{Servers: []Server{exposed("dns/a"), exposed("dns/b", "203.0.113.2")}},
			want:    []string{"example.com. 3600 NS ns2.example.com.", "ns2.example.com. 3600 A 203.0.113.2"},
			remark: "ns1.example.com. is not published: Service dns/a has no address yet that clients could use: see kubectl get service -n dns a, " +
				"or set the address of ns1.example.com. in spec.nameServers",
		},
		"no address of any yet": {
			spec:    func(s *v1beta1.DNSZoneSpec) { s.SOARecord.PrimaryNS = "ns1.example.com." },
			options: Options{Servers: []Server{exposed("dns/a")}},
			want:    []string{"example.com. 3600 NS ns1.example.com."},
			waiting: "Service dns/a has no address yet that clients could use: see kubectl get service -n dns a, or set the address of ns1.example.com. in spec.nameServers",
			pending: []string{"ns1.example.com."},
		},
		"no address yet, and another object names it": {
			spec:    func(*v1beta1.DNSZoneSpec) {},
			records: []v1beta1.Record{nsRecord(object("ns2", 1), "@", "ns2")},
			options: Options{Servers: []Server{exposed("dns/a")}},
			want:    []string{"example.com. 3600 NS ns1.example.net., ns2.example.com."},
			waiting: "Service dns/a has no address yet that clients could use: see kubectl get service -n dns a, or set the address of ns2.example.com. in spec.nameServers",
			pending: []string{"ns2.example.com."},
		},
		"a record gives the address": {
			spec:    func(s *v1beta1.DNSZoneSpec) { s.SOARecord.PrimaryNS = "ns1.example.com." },
			records: []v1beta1.Record{aRecord(object("ns1", 1), "ns1", "192.0.2.1")},
			options: Options{Servers: []Server{{Service: "dns/primary", Primary: true, Addresses: []netip.Addr{server}}}},
			want:    []string{"example.com. 3600 NS ns1.example.com.", "ns1.example.com. 3600 A 192.0.2.1"},
		},
		"an NSRecord joins the zone's NS RRset": {
			spec:    func(s *v1beta1.DNSZoneSpec) { s.TTL = &ttl },
			records: []v1beta1.Record{nsRecord(object("ns2", 1), "@", "ns2")},
			options: Options{Servers: []Server{{Service: "dns/primary", Primary: true, Addresses: []netip.Addr{server}}}},
			want:    []string{"example.com. 60 NS ns1.example.net., ns2.example.com.", "ns2.example.com. 60 A 10.96.0.1"},
		},
		"the address of a name server below a delegation is glue": {
			spec:    func(s *v1beta1.DNSZoneSpec) { s.SOARecord.PrimaryNS = "ns.sub.example.com." },
			records: []v1beta1.Record{nsRecord(object("cut", 2), "sub", "ns.example.org."), aRecord(object("ns", 1), "ns.sub", "192.0.2.1")},
			want: []string{
				"example.com. 3600 NS ns.sub.example.com.", "sub.example.com. 3600 NS ns.example.org.", "ns.sub.example.com. 3600 A 192.0.2.1",
			},
		},
		"a record and the zone unite": {
			spec: func(s *v1beta1.DNSZoneSpec) {
				s.SOARecord.PrimaryNS = "ns1.example.com."
				s.NameServers = []v1beta1.NameServer{{Hostname: "ns1.example.com.", IPv4Address: "192.0.2.1"}}
			},
			records: []v1beta1.Record{withTTL(aRecord(object("ns1", 1), "ns1", "192.0.2.2", "192.0.2.1"), 30)},
			want:    []string{"example.com. 3600 NS ns1.example.com.", "ns1.example.com. 30 A 192.0.2.1, 192.0.2.2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			z, err := Build(zoneWith(test.spec), Objects(test.records), test.options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, lines(z)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(NameServers{Waiting: test.waiting, Remark: test.remark, Pending: test.pending}, z.NameServers); diff != "" {
				t.Error(diff)
			}
			for key, want := range map[rrset.Key]bool{
				{Name: "example.com.", Type: dns.TypeNS}: test.waiting != "", {Name: "sub.example.com.", Type: dns.TypeNS}: false,
				{Name: "ns1.example.com.", Type: dns.TypeA}:    slices.Contains(test.pending, "ns1.example.com."),
				{Name: "ns2.example.com.", Type: dns.TypeAAAA}: slices.Contains(test.pending, "ns2.example.com."),
				{Name: "ns2.example.com.", Type: dns.TypeTXT}:  false,
			} {
				if got := z.IsKept(key); got != want {
					t.Errorf("%s is kept: %t", key, got)
				}
			}
			if diff := cmp.Diff(test.soa, z.SOA); diff != "" && test.soa != (rrset.SOA{}) {
				t.Error(diff)
			}
			for _, d := range z.Declarations.All() {
				if !d.Accepted {
					t.Errorf("%s: %s", d.Ref, d.Message)
				}
			}
		})
	}
}

func TestBuildRefusesZone(t *testing.T) {
	tooLong := int64(1 << 31)
	for name, test := range map[string]struct {
		spec    func(*v1beta1.DNSZoneSpec)
		message string
	}{
		"zone name":         {func(s *v1beta1.DNSZoneSpec) { s.ZoneName = "exa mple" }, "spec.zoneName: "},
		"root":              {func(s *v1beta1.DNSZoneSpec) { s.ZoneName = "." }, "spec.zoneName: "},
		"wildcard":          {func(s *v1beta1.DNSZoneSpec) { s.ZoneName = "*.example.com" }, "spec.zoneName: "},
		"IDN":               {func(s *v1beta1.DNSZoneSpec) { s.ZoneName = "bücher.example" }, `write "xn--bcher-kva.example"`},
		"TTL":               {func(s *v1beta1.DNSZoneSpec) { s.TTL = &tooLong }, "spec.ttl: "},
		"no primaryNs":      {func(s *v1beta1.DNSZoneSpec) { s.SOARecord.PrimaryNS = "" }, "spec.soaRecord.primaryNs: "},
		"primaryNs no dot":  {func(s *v1beta1.DNSZoneSpec) { s.SOARecord.PrimaryNS = "ns1.example.com" }, `"ns1.example.com." with the final dot`},
		"primaryNs address": {func(s *v1beta1.DNSZoneSpec) { s.SOARecord.PrimaryNS = "192.0.2.1" }, "spec.soaRecord.primaryNs: "},
		"hidden and alone":  {func(s *v1beta1.DNSZoneSpec) { s.SOARecord.HiddenPrimary = true }, "spec.soaRecord.hiddenPrimary: the zone would have no name server"},
		"hidden and listed": {func(s *v1beta1.DNSZoneSpec) {
			s.SOARecord.HiddenPrimary = true
			s.NameServers = []v1beta1.NameServer{{Hostname: "ns2.example.com."}, {Hostname: s.SOARecord.PrimaryNS}}
		}, "spec.nameServers[1].hostname: ns1.example.net. is soaRecord.primaryNs, which hiddenPrimary keeps out"},
		"no adminEmail":       {func(s *v1beta1.DNSZoneSpec) { s.SOARecord.AdminEmail = "" }, "spec.soaRecord.adminEmail: "},
		"serial":              {func(s *v1beta1.DNSZoneSpec) { s.SOARecord.Serial = 1 << 32 }, "spec.soaRecord.serial: "},
		"negative refresh":    {func(s *v1beta1.DNSZoneSpec) { s.SOARecord.Refresh = -1 }, "spec.soaRecord.refresh: "},
		"name server":         {func(s *v1beta1.DNSZoneSpec) { s.NameServers = []v1beta1.NameServer{{Hostname: "a..b"}} }, "spec.nameServers[0].hostname: "},
		"name server address": {func(s *v1beta1.DNSZoneSpec) { s.NameServers = []v1beta1.NameServer{{Hostname: "a", IPv4Address: "x"}} }, "spec.nameServers[0]"},
		"address family": {func(s *v1beta1.DNSZoneSpec) {
			s.NameServers = []v1beta1.NameServer{{Hostname: "a", IPv4Address: "2001:db8::1"}}
		}, "spec.nameServers[0].ipv4Address: "},
		"older address": {func(s *v1beta1.DNSZoneSpec) { s.NameServerIPs = map[string]string{"ns1": "x"} }, "spec.nameServerIps"},
		"guarded name": {func(s *v1beta1.DNSZoneSpec) {
			s.Guard = &v1beta1.ZoneGuard{NeverEmpty: []string{"www", "www.example.org."}}
		}, "spec.guard.neverEmpty[1]: "},
		"all at once": {func(s *v1beta1.DNSZoneSpec) { s.SOARecord = v1beta1.SOARecord{Retry: -1} }, "spec.soaRecord.retry: "},
	} {
		t.Run(name, func(t *testing.T) {
			z, err := Build(zoneWith(test.spec), nil, Options{})
			if err == nil {
				t.Fatalf("accepted: %v", lines(z))
			}
			if !strings.Contains(err.Error(), test.message) {
				t.Errorf("message %q does not say %q", err, test.message)
			}
		})
	}
}

func TestBuildNamesOwners(t *testing.T) {
	zone := exampleZone()
	zone.Spec.NameServers = []v1beta1.NameServer{{Hostname: "www", IPv4Address: "192.0.2.1"}}
	z, err := Build(zone, []Object{
		aRecord(object("young", 1), "www", "192.0.2.1", "192.0.2.3"), aRecord(object("old", 5), "www", "192.0.2.3", "192.0.2.2"),
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	set, _ := z.RRsets.Get(rrset.Key{Name: "www.example.com.", Type: dns.TypeA})
	got := map[string][]string{}
	for i, refs := range set.Owners {
		for _, r := range refs {
			got[set.Rdata[i]] = append(got[set.Rdata[i]], r.String())
		}
	}
	want := map[string][]string{
		"192.0.2.1": {"DNSZone dns/example-com", "ARecord dns/young"},
		"192.0.2.2": {"ARecord dns/old"},
		"192.0.2.3": {"ARecord dns/old", "ARecord dns/young"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

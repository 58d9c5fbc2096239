package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func TestEndpointData(t *testing.T) {
	long := strings.Repeat("k", 300)
	split := `"` + long[:255] + `" "` + long[255:] + `"`
	for name, test := range map[string]struct {
		endpoint v1alpha1.Endpoint
		want     []string
	}{
		"A":                        {endpoint("www.example.com", "A", "192.0.2.2", "192.0.2.1", "192.0.2.2"), []string{"192.0.2.1", "192.0.2.2"}},
		"AAAA":                     {endpoint("WWW.Example.com.", "AAAA", "2001:DB8:0::1"), []string{"2001:db8::1"}},
		"CNAME":                    {endpoint("www.example.com", "CNAME", "Web.example.org"), []string{"web.example.org."}},
		"CNAME with dot":           {endpoint("www.example.com", "CNAME", "web.example.org."), []string{"web.example.org."}},
		"CNAME is never relative":  {endpoint("www.example.com", "CNAME", "web"), []string{"web."}},
		"CNAME twice the same":     {endpoint("www.example.com", "CNAME", "web.", "WEB"), []string{"web."}},
		"NS":                       {endpoint("www.example.com", "NS", "ns2.example.org", "ns1.example.org."), []string{"ns1.example.org.", "ns2.example.org."}},
		"PTR":                      {endpoint("www.example.com", "PTR", "host.example.org"), []string{"host.example.org."}},
		"MX":                       {endpoint("www.example.com", "MX", "10 mail.example.com", "20  Backup.example.com."), []string{"10 mail.example.com.", "20 backup.example.com."}},
		"MX, no mail":              {endpoint("www.example.com", "MX", "0 ."), []string{"0 ."}},
		"SRV":                      {endpoint("www.example.com", "SRV", "10 5 443 host.example.com"), []string{"10 5 443 host.example.com."}},
		"CAA":                      {endpoint("www.example.com", "CAA", `0 Issue "ca.example.net"`, "128 iodef mailto:a@b"), []string{`0 issue "ca.example.net"`, `128 iodef "mailto:a@b"`}},
		"NAPTR":                    {endpoint("www.example.com", "NAPTR", `10 100 "S" "SIP+D2U" "" _sip._udp.Example.com`), []string{`10 100 "S" "SIP+D2U" "" _sip._udp.example.com.`}},
		"DNAME":                    {endpoint("www.example.com", "DNAME", "New.example.com"), []string{"new.example.com."}},
		"HTTPS":                    {endpoint("www.example.com", "HTTPS", "1 . alpn=h3,h2 ipv4hint=192.0.2.10"), []string{`1 . alpn="h3,h2" ipv4hint="192.0.2.10"`}},
		"HTTPS, raw":               {endpoint("www.example.com", "HTTPS", `\# 10 000100 0001 0003 02 6832`), []string{`1 . alpn="h2"`}},
		"TYPE65280":                {endpoint("www.example.com", "TYPE65280", `\# 4 0A000001`), []string{`\# 4 0a000001`}},
		"A, raw":                   {endpoint("www.example.com", "A", `\# 4 C0000201`), []string{"192.0.2.1"}},
		"TXT as it stands":         {endpoint("www.example.com", "TXT", `v=spf1 include:"x" \ -all`), []string{`"v=spf1 include:\"x\" \\ -all"`}},
		"TXT in quotes":            {endpoint("www.example.com", "TXT", `"heritage=external-dns,external-dns/owner=x"`), []string{`"heritage=external-dns,external-dns/owner=x"`}},
		"TXT in quotes, escapes":   {endpoint("www.example.com", "TXT", `"a\"b\\c\065"`), []string{`"a\"b\\cA"`}},
		"TXT of several strings":   {endpoint("www.example.com", "TXT", `"a" "b"`), []string{`"a" "b"`}},
		"TXT that is too long":     {endpoint("www.example.com", "TXT", long), []string{split}},
		"TXT quoted, too long":     {endpoint("www.example.com", "TXT", `"`+long+`"`), []string{split}},
		"TXT with a quote at ends": {endpoint("www.example.com", "TXT", `"`, `"a`, `a"`, ""), []string{`""`, `"\""`, `"\"a"`, `"a\""`}},
	} {
		t.Run(name, func(t *testing.T) {
			key, got, err := EndpointData(&test.endpoint)
			if err != nil {
				t.Fatal(err)
			}
			rrtype, _ := rrset.ParseType(test.endpoint.RecordType)
			if want := (rrset.Key{Name: "www.example.com.", Type: rrtype}); key != want {
				t.Errorf("%s, want %s", key, want)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEndpointDataRefuses(t *testing.T) {
	many := make([]string, 4001)
	for i := range many {
		many[i] = fmt.Sprintf("10.0.%d.%d", i/256, i%256)
	}
	routed := endpoint("www.example.com", "A", "192.0.2.1")
	routed.SetIdentifier = "blue"
	ttl, negative := endpoint("www.example.com", "A", "192.0.2.1"), endpoint("www.example.com", "A", "192.0.2.1")
	ttl.RecordTTL, negative.RecordTTL = 1<<31, -1
	for name, test := range map[string]struct {
		endpoint v1alpha1.Endpoint
		// messages are what each line begins with.
		messages []string
	}{
		"unknown type": {endpoint("www.example.com", "ALIAS", "x"),
			[]string{`recordType: "ALIAS" is not published here: "ALIAS" is not a record type; write one of the IANA registry`}},
		"type of the zone":       {endpoint("www.example.com", "SOA", "x"), []string{`recordType: "SOA" is not published here: the DNSZone declares the SOA record`}},
		"type of signing":        {endpoint("www.example.com", "DNSKEY", "x"), []string{`recordType: "DNSKEY" is not published here: servers maintain DNSKEY records`}},
		"DNAME to itself":        {endpoint("www.example.com", "DNAME", "a.www.example.com"), []string{"targets: www.example.com. would redirect to itself"}},
		"DNAME to two":           {endpoint("www.example.com", "DNAME", "a.", "b."), []string{"targets: a DNAME has one target, and there are 2"}},
		"HTTPS without priority": {endpoint("www.example.com", "HTTPS", "x"), []string{"targets[0]: HTTPS rdata"}},
		"no type":                {endpoint("www.example.com", "", "192.0.2.1"), []string{`recordType: "" is not published here`}},
		"type of another case":   {endpoint("www.example.com", "a", "192.0.2.1"), []string{`recordType: "a" is not published here`}},
		"no target":              {endpoint("www.example.com", "A"), []string{"targets: there is no target"}},
		"no name":                {endpoint("", "A", "192.0.2.1"), []string{"dnsName: the name is empty"}},
		"bad name":               {endpoint("a..b.example.com", "A", "192.0.2.1"), []string{"dnsName: "}},
		"bad wildcard":           {endpoint("a.*.example.com", "A", "192.0.2.1"), []string{`dnsName: "a.*.example.com" has a "*"`}},
		"routed":                 {routed, []string{`setIdentifier: "blue": weighted`}},
		"TTL":                    {ttl, []string{"recordTTL: 2147483648"}},
		"negative TTL":           {negative, []string{"recordTTL: -1"}},
		"several targets":        {endpoint("www.example.com", "A", "x", "192.0.2.1", "2001:db8::1"), []string{"targets[0]: ", "targets[2]: "}},
		"several fields":         {endpoint("a..b", "A", "x"), []string{"dnsName: ", "targets[0]: "}},
		"too many":               {endpoint("www.example.com", "A", many...), []string{"targets: there are 4001 values"}},
		"CNAME to two":           {endpoint("www.example.com", "CNAME", "a.", "b."), []string{"targets: a CNAME has one target, and there are 2"}},
		"CNAME to an address":    {endpoint("www.example.com", "CNAME", "192.0.2.1"), []string{`targets[0]: "192.0.2.1" holds an address where a host name belongs; publish the address with recordType A`}},
		"CNAME to the root":      {endpoint("www.example.com", "CNAME", "."), []string{`targets[0]: "." is the root`}},
		"CNAME to itself":        {endpoint("www.example.com", "CNAME", "WWW.example.com."), []string{"targets: www.example.com. would be an alias of itself"}},
		"NS at a wildcard":       {endpoint("*.example.com", "NS", "ns.example.com"), []string{"dnsName: *.example.com.: name servers cannot"}},
		"MX without number":      {endpoint("www.example.com", "MX", "mail.example.com"), []string{"targets[0]: "}},
		"MX to an address":       {endpoint("www.example.com", "MX", "10 192.0.2.1"), []string{"targets[0]: "}},
		"SRV of three fields":    {endpoint("www.example.com", "SRV", "10 443 host.example.com"), []string{"targets[0]: "}},
		"NAPTR of five fields":   {endpoint("www.example.com", "NAPTR", `10 100 "S" "SIP+D2U" _sip._udp.example.com`), []string{"targets[0]: "}},
		"CAA without value":      {endpoint("www.example.com", "CAA", "0 issue"), []string{"targets[0]: "}},
		"TXT quoted wrong":       {endpoint("www.example.com", "TXT", `"a"b"`), []string{"targets[0]: "}},
		"IDN":                    {endpoint("bücher.example.com", "A", "192.0.2.1"), []string{`dnsName: "bücher.example.com" is not ASCII; write "xn--bcher-kva.example.com"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, got, err := EndpointData(&test.endpoint)
			if err == nil {
				t.Fatalf("accepted as %q", got)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(test.messages) {
				t.Fatalf("messages: %q", lines)
			}
			for i, want := range test.messages {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("message %q does not begin with %q", lines[i], want)
				}
			}
		})
	}
}

func TestBuildDNSEndpoints(t *testing.T) {
	const old = "declared by ARecord dns/record, which is older"
	for name, test := range map[string]struct {
		endpoints []v1alpha1.Endpoint
		// want tells by index what became of each endpoint: the beginning of its message, "" for accepted.
		want map[int]string
		sets []string
		// longest is how long a message may be; 0 for any length.
		longest int
	}{
		"all types": {
			endpoints: []v1alpha1.Endpoint{
				endpoint("a.example.com", "A", "192.0.2.1"), endpoint("a.example.com", "AAAA", "2001:db8::1"),
				endpoint("c.example.com", "CNAME", "a.example.com"), endpoint("sub.example.com", "NS", "ns.example.org"),
				endpoint("p.example.com", "PTR", "a.example.com"), endpoint("t.example.com", "TXT", "text"),
				endpoint("example.com", "MX", "10 a.example.com"), endpoint("_sip._tcp.example.com", "SRV", "1 2 3 a.example.com"),
				endpoint("example.com.", "CAA", `0 issue "ca"`),
			},
			want: map[int]string{0: "", 1: "", 2: "", 3: "", 4: "", 5: "", 6: "", 7: "", 8: ""},
			sets: []string{
				"a.example.com. 3600 A 192.0.2.1", "a.example.com. 3600 AAAA 2001:db8::1", "c.example.com. 3600 CNAME a.example.com.",
				"sub.example.com. 3600 NS ns.example.org.", "p.example.com. 3600 PTR a.example.com.", `t.example.com. 3600 TXT "text"`,
				"_sip._tcp.example.com. 3600 SRV 1 2 3 a.example.com.",
			},
		},
		"one bad endpoint is refused alone": {
			endpoints: []v1alpha1.Endpoint{endpoint("a.example.com", "A", "x"), endpoint("a.example.com", "A", "192.0.2.1")},
			want:      map[int]string{0: "Invalid: spec.endpoints[0] (a.example.com A): targets[0]: ", 1: ""},
			sets:      []string{"a.example.com. 3600 A 192.0.2.1"},
		},
		"values unite": {
			endpoints: []v1alpha1.Endpoint{endpoint("a.example.com", "A", "192.0.2.2"), endpoint("A.example.com.", "A", "192.0.2.1", "192.0.2.2")},
			want:      map[int]string{0: "", 1: ""},
			sets:      []string{"a.example.com. 3600 A 192.0.2.1, 192.0.2.2"},
		},
		"the earlier endpoint wins": {
			endpoints: []v1alpha1.Endpoint{endpoint("a.example.com", "CNAME", "b.example.com"), endpoint("a.example.com", "A", "192.0.2.1")},
			want:      map[int]string{0: "", 1: "Conflict: spec.endpoints[1] (a.example.com A): a.example.com. is an alias, declared by spec.endpoints[0], which comes first"},
			sets:      []string{"a.example.com. 3600 CNAME b.example.com."},
		},
		"the older object wins": {
			endpoints: []v1alpha1.Endpoint{endpoint("www.example.com", "CNAME", "b.example.com")},
			want:      map[int]string{0: "Conflict: spec.endpoints[0] (www.example.com CNAME): www.example.com. already has A data, " + old},
		},
		"alias at the apex": {
			endpoints: []v1alpha1.Endpoint{endpoint("example.com", "CNAME", "b.example.org")},
			want:      map[int]string{0: "Invalid: spec.endpoints[0] (example.com CNAME): dnsName: a CNAME cannot stand at the apex"},
		},
		"name servers, one of them an alias": {
			endpoints: []v1alpha1.Endpoint{endpoint("ns2.example.com", "CNAME", "b.example.org"), endpoint("example.com", "NS", "ns3.example.org", "ns2.example.com")},
			want:      map[int]string{0: "", 1: "Conflict: spec.endpoints[1] (example.com NS): targets: ns2.example.com. is an alias, declared by spec.endpoints[0], which comes first"},
		},
		"what is not of this zone": {
			endpoints: []v1alpha1.Endpoint{endpoint("example.org", "A", "x"), endpoint("badexample.com", "A", "x"), endpoint("a.example.com", "A", "192.0.2.1")},
			want:      map[int]string{2: ""},
		},
		"a bad name at the end of which is this zone": {
			endpoints: []v1alpha1.Endpoint{endpoint("a..b.Example.com", "A", "192.0.2.1")},
			want:      map[int]string{0: "Invalid: spec.endpoints[0] (a..b.Example.com A): dnsName: "},
		},
		"more reasons than anybody reads": {
			endpoints: []v1alpha1.Endpoint{endpoint("a.example.com", "A", strings.Split(strings.Repeat("x ", 999), " ")...)},
			want:      map[int]string{0: "Invalid: spec.endpoints[0] (a.example.com A): targets[0]: "},
			longest:   1000,
		},
		"names longer than anybody reads": {
			endpoints: []v1alpha1.Endpoint{endpoint(strings.Repeat("long.", 9999)+"example.com", strings.Repeat("x", 9999), "x")},
			want:      map[int]string{0: "Invalid: spec.endpoints[0] (long.long."},
			longest:   1000,
		},
		"several reasons on one line": {
			endpoints: []v1alpha1.Endpoint{endpoint("a.example.com", "A", "x", "y")},
			want:      map[int]string{0: "Invalid: spec.endpoints[0] (a.example.com A): targets[0]: A rdata \"x\": not an IPv4 address, such as 192.0.2.1; targets[1]: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := endpoints(object("many", 1), test.endpoints...)
			z, err := Build(exampleZone(), []Object{e, aRecord(object("record", 2), "www", "192.0.2.7")}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, refused, elsewhere := map[int]string{}, 0, 0
			for id, d := range z.Of(KeyOf(e)) {
				if *d.Ref != (Ref{"externaldns.k8s.io/v1alpha1", "DNSEndpoint", "dns", "many", e.UID, 1}) {
					t.Errorf("declared by %v", d.Ref)
				}
				if got[id.Index] = ""; !d.Accepted {
					got[id.Index], refused = d.Reason+": "+d.Message, refused+1
				}
				if strings.Contains(d.Message, "is not published here") {
					elsewhere++
				}
			}
			if refused != z.Refused || elsewhere != z.Elsewhere {
				t.Errorf("%d are refused, %d of them for other programs; the zone says %d and %d", refused, elsewhere, z.Refused, z.Elsewhere)
			}
			for i, message := range got {
				if test.longest > 0 && len(message) > test.longest {
					t.Errorf("endpoint %d: a message of %d bytes", i, len(message))
				}
				if want, ok := test.want[i]; !ok || !strings.HasPrefix(message, want) || (want == "" && message != "") {
					t.Errorf("endpoint %d: %q, want %q", i, message, want)
				}
			}
			if len(got) != len(test.want) {
				t.Errorf("%d declarations: %v", len(got), got)
			}
			present := lines(z)
			for _, want := range test.sets {
				if !strings.Contains(strings.Join(present, "\n"), want) {
					t.Errorf("%q is not in %q", want, present)
				}
			}
		})
	}
}

func TestEndpointTTLAndNotes(t *testing.T) {
	low, high := endpoint("a.example.com", "A", "192.0.2.1"), endpoint("a.example.com", "A", "192.0.2.2")
	low.RecordTTL, high.RecordTTL = 60, 600
	e := endpoints(object("many", 1), low, high, endpoint("example.com", "MX", "10 nowhere.example.com", "20 nowhere.example.com"))
	z, err := Build(exampleZone(), []Object{e}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]string{
		0: "",
		1: "spec.endpoints[1] (a.example.com A): TTL 60 is served instead of 600: DNSEndpoint dns/many declares it for the same name and type, which have one TTL (RFC 2181 section 5.2)",
		2: "spec.endpoints[2] (example.com MX): nowhere.example.com. has no address in this zone; publish one with an ARecord or AAAARecord",
	}
	got := map[int]string{}
	for id, d := range z.Of(KeyOf(e)) {
		got[id.Index] = d.Note
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPublishedKeys(t *testing.T) {
	annotated := func(names string) metav1.ObjectMeta {
		o := object("o", 1)
		o.Annotations = map[string]string{v1beta1.FormerNamesAnnotation: names}
		return o
	}
	published := aRecord(annotated("older/A,oldest.example.com./A, www/A,x.example.org./A,,no-type,a/b/A,@/ALIAS,a..b/A"), "www", "192.0.2.1")
	published.Status = v1beta1.RecordStatus{PublishedName: "Old.example.com", Zone: "example.com"}
	elsewhere := aRecord(object("o", 1), "www", "192.0.2.1")
	elsewhere.Status = v1beta1.RecordStatus{PublishedName: "x.sub.example.com", Zone: "sub.example.com"}
	outside := aRecord(object("o", 1), "www.example.org.", "192.0.2.1")
	outside.Status.PublishedName = "www.example.org"
	many := endpoints(annotated("old.example.com/TXT,x.example.org/A"), endpoint("A.example.com", "A", "x"), endpoint("a.example.org", "A", "192.0.2.1"),
		endpoint("b.example.com", "ALIAS", "x"), endpoint("a.example.com.", "A", "192.0.2.2"))
	many.Spec.Endpoints = append(many.Spec.Endpoints, nil)
	many.Status.Zones = []v1alpha1.EndpointZone{
		{Namespace: "dns", Name: "example-com", ZoneName: "example.com", RRsets: []string{"www.example.com./A", "a.example.com./A", "example.com./SOA", "x"}},
		{Namespace: "dns", Name: "other", ZoneName: "sub.example.com", RRsets: []string{"x.sub.example.com./A"}},
	}
	for name, test := range map[string]struct {
		object Object
		want   []string
	}{
		"never published":     {cnameRecord(object("o", 1), "@", "x"), []string{"example.com. CNAME"}},
		"with former names":   {published, []string{"a/b.example.com. A", "old.example.com. A", "older.example.com. A", "oldest.example.com. A", "www.example.com. A"}},
		"from another zone":   {elsewhere, []string{"www.example.com. A"}},
		"nothing in the zone": {outside, nil},
		"endpoints":           {many, []string{"a.example.com. A", "old.example.com. TXT", "www.example.com. A"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, key := range PublishedKeys(test.object, "example.com.") {
				got = append(got, key.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// fuzzedTypes have rules of their own, or names in their data.
var fuzzedTypes = []uint16{
	dns.TypeA, dns.TypeAAAA, dns.TypeCNAME, dns.TypeNS, dns.TypePTR, dns.TypeTXT, dns.TypeMX, dns.TypeSRV, dns.TypeCAA, dns.TypeNAPTR, dns.TypeDNAME,
}

// Whatever is accepted of these types goes through DNS messages and miekg/dns' parser of zone files and is the same again.
func FuzzEndpointData(f *testing.F) {
	for _, target := range []string{
		"192.0.2.1", "2001:db8::1", "host.example.org", "HOST.example.org.", "10 mail.example.org", "1 2 3 host", `0 issue "ca\"x"`, "text",
		`"quoted" "twice"`, `a\065b`, "ü", "", `"`, `"\`, "*.x", `0 issue \`, ". 10", "0 .",
	} {
		for _, rrtype := range fuzzedTypes {
			f.Add("www.example.com", rrtype, target)
		}
	}
	f.Fuzz(func(t *testing.T, dnsName string, rrtype uint16, target string) {
		if !slices.Contains(fuzzedTypes, rrtype) {
			return
		}
		e := endpoint(dnsName, dns.TypeToString[rrtype], target)
		key, rdata, err := EndpointData(&e)
		if err != nil {
			if !strings.Contains(err.Error(), ": ") {
				t.Fatalf("message %q names no field", err)
			}
			return
		}
		if name, err := rrset.CanonicalName(key.Name); err != nil || name != key.Name || len(rdata) != 1 {
			t.Fatalf("%q became %q with %q, %v", dnsName, key.Name, rdata, err)
		}
		rr, err := rrset.ToRR(key, 300, rdata[0])
		if err != nil {
			t.Fatalf("%q became %q, which cannot be sent: %v", target, rdata[0], err)
		}
		send := func(rr dns.RR, from string) {
			wire := make([]byte, dns.MaxMsgSize)
			n, err := dns.PackRR(rr, wire, 0, nil, false)
			if err != nil {
				t.Fatalf("%q from %s cannot be packed: %v", rdata[0], from, err)
			}
			received, _, err := dns.UnpackRR(wire[:n], 0)
			if err != nil {
				t.Fatal(err)
			}
			if k, ttl, again := rrset.FromRR(received); k != key || ttl != 300 || again != rdata[0] {
				t.Fatalf("%s %q from %s became %s %q", key, rdata[0], from, k, again)
			}
		}
		send(rr, "ToRR")
		parsed, err := dns.NewRR(fmt.Sprintf("%s 300 IN %s %s", key.Name, dns.Type(key.Type), rdata[0]))
		if err != nil {
			t.Fatalf("miekg/dns does not read %q: %v", rdata[0], err)
		}
		if len(rdata[0]) < 1000 || key.Type != dns.TypeCAA { // It reads longer CAA, but packs none.
			send(parsed, "a zone file")
		}
	})
}

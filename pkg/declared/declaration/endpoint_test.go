package declaration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func endpoint(dnsName, recordType string, targets ...string) v1alpha1.Endpoint {
	return v1alpha1.Endpoint{DNSName: dnsName, RecordType: recordType, Targets: targets}
}

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
		"unknown type": {endpoint("www.example.com", "BOGUS", "x"),
			[]string{`recordType: "BOGUS" is not published here: "BOGUS" is not a record type; write one of the IANA registry`}},
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

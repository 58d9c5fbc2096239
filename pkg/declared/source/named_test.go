package source

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/named"
)

// extra lets BIND serve mail exchangers in the zone that have no address yet, and names with "_".
const extra = "check-integrity no; check-names primary ignore;"

// What BIND serves is compared with what Build wants: a zone that BIND changes, refuses or drops a part of fails here.

type content = map[rrset.Key]rrset.RRset

// served transfers the zone.
func served(t *testing.T, s *named.Server, zone string) (content, rrset.SOA) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	result, err := wire.Transfer(ctx, s.Addr, zone, nil, &s.Transfer)
	if err != nil {
		t.Fatal(err)
	}
	c := content{}
	for _, r := range result.Records {
		c[r.Key] = rrset.New(r.Key, r.TTL, append(c[r.Key].Rdata, r.Rdata)...)
	}
	return c, result.SOA
}

func wanted(z *Zone) content {
	c := content{}
	for s := range z.All() {
		c[s.Key] = s
	}
	return c
}

// zoneFile writes canonical names and rdata as they are: they are valid in a zone file.
func zoneFile(z *Zone, serial uint32) string {
	var b strings.Builder
	soa := z.SOA
	soa.Serial = serial
	fmt.Fprintf(&b, "%s %d IN SOA %s\n", z.Name, soa.TTL, soa.Rdata())
	for s := range z.All() {
		for _, rdata := range s.Rdata {
			fmt.Fprintf(&b, "%s %d IN %s %s\n", s.Name, s.TTL, rrset.TypeName(s.Type), rdata)
		}
	}
	return b.String()
}

var (
	oddNames = []string{
		"@", "www", "WWW", "a.b.c", "*", "*.deep", "_sip._tcp", `a\.b`, `sp\032ace`, "$dollar", "it's", `q\"uote`, `b\195\188cher`,
		"0/25", `semi\;colon`, `at\@`, `par\(en\)`, `back\\slash`, strings.Repeat("x", 63), "sub", "ns1.sub", "below.sub", "ns1", "a=b",
	}
	oddHosts = []string{"www", "mail.example.org.", `odd\.name`, "@", "$x.example.net.", "ns1.sub", "ns1"}
)

// oddBytes are at most so many bytes of any value.
func oddBytes(r *rand.Rand, most int) string {
	s := make([]byte, r.IntN(most+1))
	for i := range s {
		s[i] = byte(r.IntN(256))
	}
	return string(s)
}

// oddTypes are those of the endpoints.
var oddTypes = []uint16{
	dns.TypeA, dns.TypeAAAA, dns.TypeCNAME, dns.TypeNS, dns.TypePTR, dns.TypeTXT, dns.TypeMX, dns.TypeSRV, dns.TypeCAA, dns.TypeNAPTR,
	dns.TypeHTTPS, dns.TypeTLSA, dns.TypeSSHFP, dns.TypeURI, dns.TypeLOC, dns.TypeRP, dns.TypeCERT, dns.TypeOPENPGPKEY, dns.TypeSMIMEA,
}

// oddData are data of a type with everything that it may hold.
func oddData(r *rand.Rand, rrtype string, host func() string) string {
	return map[string]string{
		"A": fmt.Sprintf("192.0.2.%d", r.IntN(256)), "AAAA": fmt.Sprintf("2001:DB8::%X", r.IntN(65536)),
		"CNAME": host(), "NS": host(), "PTR": host(), "MX": fmt.Sprintf("%d %s", r.IntN(65536), host()),
		"SRV": fmt.Sprintf("1 %d 65535 %s", r.IntN(3), host()), "CAA": fmt.Sprintf(`%d Issue "a\"b\\c %d"`, r.IntN(256), r.IntN(9)),
		"NAPTR":      fmt.Sprintf(`%d %d "U" "E2U+sip" "!^\\+(.*)$!sip:\\1@\"%d!" %s`, r.IntN(65536), r.IntN(9), r.IntN(9), host()),
		"HTTPS":      fmt.Sprintf(`%d %s alpn=h2,h3 port=%d ipv4hint=192.0.2.1 ech=AAAA`, 1+r.IntN(9), host(), r.IntN(65536)),
		"TLSA":       fmt.Sprintf("3 1 %d 01AB %08x", r.IntN(3), r.Uint32()),
		"SMIMEA":     fmt.Sprintf("0 0 %d %08x", r.IntN(3), r.Uint32()),
		"SSHFP":      fmt.Sprintf("%d 1 0123456789abcdef0123456789ABCDEF%08x", r.IntN(5), r.Uint32()),
		"URI":        fmt.Sprintf(`%d 1 "ftp://x/%d"`, r.IntN(9), r.IntN(9)),
		"LOC":        fmt.Sprintf("%d 30 12.748 N 0 7 39.612 W %d.00m 1m 10000m 10m", r.IntN(90), r.IntN(999)),
		"RP":         fmt.Sprintf("%s %s", host(), host()),
		"CERT":       fmt.Sprintf("PKIX %d 8 AQID", r.IntN(65536)),
		"OPENPGPKEY": oneOf(r, []string{"AQID", "AQ ID BA=="}),
		"TXT":        oneOf(r, []string{oddBytes(r, 600), `"quoted \"text\" \255" "and more"`, `a "half quoted`}),
		"SVCB":       fmt.Sprintf(`%d %s alpn=dot port=%d key65400="\001x"`, 1+r.IntN(9), host(), r.IntN(65536)),
		"DNAME":      host(),
		"DS":         fmt.Sprintf("%d 13 2 0123456789ABCDEF0123456789abcdef0123456789ABCDEF01234567 %08x", r.IntN(65536), r.Uint32()),
		"TYPE65280":  fmt.Sprintf(`\# 5 %08x 0a`, r.Uint32()),
	}[rrtype]
}

// typesOfRecords are those of the DNSRecords: types without a kind of their own.
var typesOfRecords = []string{
	"OPENPGPKEY", "SMIMEA", "CERT", "SVCB", "HTTPS", "LOC", "URI", "SSHFP", "TLSA", "DNAME", "NAPTR", "RP", "TYPE65280",
}

// oddEndpoints are endpoints of many types with everything that names and targets may hold.
func oddEndpoints(r *rand.Rand, zone string, n int) *v1alpha1.DNSEndpoint {
	complete := func(name string) string {
		switch {
		case name == "@":
			return zone
		case strings.HasSuffix(name, "."):
			return strings.TrimSuffix(name, oneOf(r, []string{"", "."}))
		}
		return name + "." + zone
	}
	host := func() string { return complete(oneOf(r, oddHosts)) }
	e := endpoints(object("endpoints", r.IntN(n)))
	for i := range n {
		endpoint := &v1alpha1.Endpoint{
			DNSName: complete(oneOf(r, []string{oneOf(r, oddNames), fmt.Sprintf("own%d", i)})), RecordTTL: int64(r.IntN(4) * 100),
			RecordType: dns.TypeToString[oddTypes[i%len(oddTypes)]],
		}
		for len(endpoint.Targets) == 0 || (endpoint.RecordType != "CNAME" && r.IntN(3) == 0) {
			endpoint.Targets = append(endpoint.Targets, oddData(r, endpoint.RecordType, host))
		}
		e.Spec.Endpoints = append(e.Spec.Endpoints, endpoint)
	}
	return e
}

// oddRecords are records with everything that names and values may hold.
func oddRecords(r *rand.Rand, n int) []v1beta1.Record {
	host := func() string { return oneOf(r, oddHosts) }
	var records []v1beta1.Record
	for i := range n {
		o, c := object(fmt.Sprintf("r%d", i), r.IntN(n)), common(oneOf(r, oddNames), int64(r.IntN(4)*100))
		var record v1beta1.Record
		switch r.IntN(14) {
		case 0, 1:
			record = &v1beta1.ARecord{ObjectMeta: o, Spec: v1beta1.ARecordSpec{RecordCommon: c, IPv4Address: fmt.Sprintf("192.0.2.%d", r.IntN(256))}}
		case 2:
			var raw [16]byte
			for i := range raw {
				raw[i] = byte(r.IntN(2) * r.IntN(256))
			}
			record = &v1beta1.AAAARecord{ObjectMeta: o, Spec: v1beta1.AAAARecordSpec{RecordCommon: c, IPv6Address: strings.ToUpper(netip.AddrFrom16(raw).String())}}
		case 3:
			record = &v1beta1.CNAMERecord{ObjectMeta: o, Spec: v1beta1.CNAMERecordSpec{RecordCommon: c, Target: host()}}
		case 4:
			record = &v1beta1.NSRecord{ObjectMeta: o, Spec: v1beta1.NSRecordSpec{RecordCommon: c, Nameserver: host()}}
		case 5:
			record = &v1beta1.TXTRecord{ObjectMeta: o, Spec: v1beta1.TXTRecordSpec{RecordCommon: c, Text: []string{oddBytes(r, 600), oddBytes(r, 3)}}}
		case 6:
			record = &v1beta1.MXRecord{ObjectMeta: o, Spec: v1beta1.MXRecordSpec{RecordCommon: c, Priority: int32(r.IntN(65536)), MailServer: strings.ToUpper(host())}}
		case 7:
			record = &v1beta1.SRVRecord{ObjectMeta: o, Spec: v1beta1.SRVRecordSpec{RecordCommon: c, Priority: 1, Weight: int32(r.IntN(3)), Port: 65535, Target: host()}}
		case 8:
			record = &v1beta1.CAARecord{ObjectMeta: o, Spec: v1beta1.CAARecordSpec{RecordCommon: c, Flags: int32(r.IntN(256)), Tag: "Issue", Value: oddBytes(r, 300)}}
		case 9:
			record = &v1beta1.PTRRecord{ObjectMeta: o, Spec: v1beta1.PTRRecordSpec{RecordCommon: c, Target: host()}}
		default:
			rrtype := typesOfRecords[i%len(typesOfRecords)]
			c.Name = oneOf(r, []string{c.Name, fmt.Sprintf("typed%d", i)})
			record = &v1beta1.DNSRecord{ObjectMeta: o, Spec: v1beta1.DNSRecordSpec{RecordCommon: c, Type: rrtype, Data: []string{oddData(r, rrtype, host)}}}
		}
		records = append(records, record)
	}
	return records
}

// oddZone is a zone of odd records and endpoints; servers fill in for in-zone name servers without an address.
func oddZone(t *testing.T, r *rand.Rand, name string, n int) *Zone {
	t.Helper()
	zone := exampleZone()
	zone.Spec.ZoneName = name
	zone.Spec.SOARecord.AdminEmail = "first.last+dns@example.com"
	zone.Spec.NameServers = []v1beta1.NameServer{{Hostname: "ns1"}, {Hostname: "ns.example.org."}}
	objects := append(Objects(oddRecords(r, n)), oddEndpoints(r, name, n))
	z, err := Build(zone, objects, Options{Servers: []Server{{Primary: true, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.53")}}}})
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestBINDLoadsWhatIsBuilt(t *testing.T) {
	var zones []named.Zone
	var want []*Zone
	published, recorded := map[uint16]int{}, map[string]int{}
	for seed := range uint64(30) {
		z := oddZone(t, rand.New(rand.NewPCG(seed, 4)), fmt.Sprintf("z%d.example.", seed), 60)
		want = append(want, z)
		for _, d := range z.Declarations.All() {
			if d.Ref.Kind == EndpointKind && d.Accepted {
				published[d.Key.Type]++
			}
			if d.Ref.Kind == "DNSRecord" && d.Accepted {
				recorded[rrset.TypeName(d.Key.Type)]++
			}
		}
		zones = append(zones, named.Zone{Name: z.Name, File: zoneFile(z, 7)})
	}
	for _, rrtype := range oddTypes {
		if published[rrtype] < 10 {
			t.Errorf("only %d endpoints of type %s are put to the test", published[rrtype], dns.Type(rrtype))
		}
	}
	for _, rrtype := range typesOfRecords {
		if recorded[rrtype] < 10 {
			t.Errorf("only %d DNSRecords of type %s are put to the test", recorded[rrtype], rrtype)
		}
	}
	server := named.Start(t, named.Options{Zones: zones, Extra: extra})
	for _, z := range want {
		got, soa := served(t, server, z.Name)
		if diff := cmp.Diff(wanted(z), got); diff != "" {
			t.Errorf("%s: %s", z.Name, diff)
		}
		z.SOA.Serial = 7
		if diff := cmp.Diff(z.SOA, soa); diff != "" {
			t.Errorf("%s: %s", z.Name, diff)
		}
	}
}

// spelledZone has names and targets in upper and lower case.
func spelledZone(t *testing.T) *Zone {
	t.Helper()
	printer := `Office\032Printer._ipp._tcp`
	ptr := &v1beta1.PTRRecord{ObjectMeta: object("ptr", 1), Spec: v1beta1.PTRRecordSpec{RecordCommon: common("_ipp._tcp"), Target: printer}}
	e := endpoints(object("e", 1), endpoint("Mixed.Example.com", "MX", "10 Mail.Example.org"))
	z, err := Build(exampleZone(), []Object{ptr, txtRecord(object("txt", 1), printer, "x"), e, cnameRecord(object("alias", 1), "alias", "Web")}, Options{})
	if err != nil || z.Refused > 0 {
		t.Fatal(err, verdicts(z))
	}
	return z
}

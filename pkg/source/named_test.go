package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/provider/rfc2136"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/wire"
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
			fmt.Fprintf(&b, "%s %d IN %s %s\n", s.Name, s.TTL, dns.Type(s.Type), rdata)
		}
	}
	return b.String()
}

// oddRecords are records with everything that names and values may hold.
func oddRecords(r *rand.Rand, n int) []v1beta1.Record {
	names := []string{
		"@", "www", "WWW", "a.b.c", "*", "*.deep", "_sip._tcp", `a\.b`, `sp\032ace`, "$dollar", "it's", `q\"uote`, `b\195\188cher`,
		"0/25", `semi\;colon`, `at\@`, `par\(en\)`, `back\\slash`, strings.Repeat("x", 63), "sub", "ns1.sub", "below.sub", "ns1", "a=b",
	}
	hosts := []string{"www", "mail.example.org.", `odd\.name`, "@", "$x.example.net.", "ns1.sub", "ns1"}
	bytes := func(max int) string {
		s := make([]byte, r.IntN(max+1))
		for i := range s {
			s[i] = byte(r.IntN(256))
		}
		return string(s)
	}
	host := func() string { return hosts[r.IntN(len(hosts))] }
	var records []v1beta1.Record
	for i := range n {
		o, c := object(fmt.Sprintf("r%d", i), r.IntN(n)), common(names[r.IntN(len(names))], int64(r.IntN(4)*100))
		var record v1beta1.Record
		switch r.IntN(9) {
		case 0, 1:
			record = &v1beta1.ARecord{ObjectMeta: o, Spec: a{RecordCommon: c, IPv4Address: fmt.Sprintf("192.0.2.%d", r.IntN(256))}}
		case 2:
			var raw [16]byte
			for i := range raw {
				raw[i] = byte(r.IntN(2) * r.IntN(256))
			}
			record = &v1beta1.AAAARecord{ObjectMeta: o, Spec: aaaa{RecordCommon: c, IPv6Address: strings.ToUpper(netip.AddrFrom16(raw).String())}}
		case 3:
			record = &v1beta1.CNAMERecord{ObjectMeta: o, Spec: cname{RecordCommon: c, Target: host()}}
		case 4:
			record = &v1beta1.NSRecord{ObjectMeta: o, Spec: ns{RecordCommon: c, Nameserver: host()}}
		case 5:
			record = &v1beta1.TXTRecord{ObjectMeta: o, Spec: txt{RecordCommon: c, Text: []string{bytes(600), bytes(3)}}}
		case 6:
			record = &v1beta1.MXRecord{ObjectMeta: o, Spec: mx{RecordCommon: c, Priority: int32(r.IntN(65536)), MailServer: strings.ToUpper(host())}}
		case 7:
			record = &v1beta1.SRVRecord{ObjectMeta: o, Spec: srv{RecordCommon: c, Priority: 1, Weight: int32(r.IntN(3)), Port: 65535, Target: host()}}
		case 8:
			record = &v1beta1.CAARecord{ObjectMeta: o, Spec: caa{RecordCommon: c, Flags: int32(r.IntN(256)), Tag: "Issue", Value: bytes(300)}}
		}
		records = append(records, record)
	}
	return records
}

// oddZone is a zone of odd records; servers fill in for in-zone name servers without an address.
func oddZone(t *testing.T, r *rand.Rand, name string, n int) *Zone {
	t.Helper()
	zone := exampleZone()
	zone.Spec.ZoneName = name
	zone.Spec.SOARecord.AdminEmail = "first.last+dns@example.com"
	zone.Spec.NameServers = []v1beta1.NameServer{{Hostname: "ns1"}, {Hostname: "ns.example.org."}}
	z, err := Build(zone, oddRecords(r, n), Options{ServerAddresses: []netip.Addr{netip.MustParseAddr("192.0.2.53")}})
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestBINDLoadsWhatIsBuilt(t *testing.T) {
	var zones []named.Zone
	var want []*Zone
	for seed := range uint64(30) {
		z := oddZone(t, rand.New(rand.NewPCG(seed, 4)), fmt.Sprintf("z%d.example.", seed), 60)
		want = append(want, z)
		zones = append(zones, named.Zone{Name: z.Name, File: zoneFile(z, 7)})
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

// Whatever a zone held before, planning and applying leads to exactly what is desired, and then there is nothing to do.
func TestBINDFollowsPlans(t *testing.T) {
	const name = "example.com."
	first := oddZone(t, rand.New(rand.NewPCG(1, 5)), name, 40)
	server := named.Start(t, named.Options{Zones: []named.Zone{{Name: name, File: zoneFile(first, 1)}}, Extra: extra})
	provider := rfc2136.New(rfc2136.Options{})
	defer provider.Close()
	target := rfc2136.Target{Server: server.Addr, Zone: name, Key: &server.Update}
	for seed := range uint64(40) {
		z := oddZone(t, rand.New(rand.NewPCG(seed, 6)), name, 40)
		have, soa := served(t, server, name)
		owned := map[rrset.Key]struct{}{}
		for key := range have {
			owned[key] = struct{}{}
		}
		changes := plan.Calculate(z, plan.Map(have), owned, z.SOA, soa)
		next := z.SOA
		next.Serial = rrset.AddSerial(soa.Serial, uint32(rfc2136.Batches(changes)+1))
		result, err := provider.Apply(t.Context(), target, changes, soa, next)
		if err != nil || len(result.Refused) > 0 {
			var refused []error
			for _, key := range slices.SortedFunc(maps.Keys(result.Refused), rrset.Key.Compare) {
				refused = append(refused, fmt.Errorf("%s: %w", key, result.Refused[key]))
			}
			t.Fatalf("seed %d: %v, refused: %v", seed, err, errors.Join(refused...))
		}
		got, soa := served(t, server, name)
		if diff := cmp.Diff(wanted(z), got); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if again := plan.Calculate(z, plan.Map(got), owned, z.SOA, soa); again.HasChanges() {
			t.Fatalf("seed %d: a second plan has changes: %+v", seed, again)
		}
	}
}

package zoneimport

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Names for people, as those of DNS-SD (RFC 6763 section 4.1.1), are published as the zone file spells them.
func TestImportKeepsSpelling(t *testing.T) {
	const zone = `$TTL 60
@ SOA ns1 hostmaster 1 2h 15m 2w 60
@ NS ns1
ns1 A 192.0.2.53
_ipp._tcp PTR Office\032Printer._ipp._tcp
Office\032Printer._ipp._tcp SRV 0 0 631 Printer
 TXT "Note=X"
Www A 192.0.2.1
WWW A 192.0.2.2
mail MX 10 MX1
mail MX 10 mx1
x CNAME CDN.Example.NET.
h HTTPS 1 Svc.Example.NET. alpn="h2"
$GENERATE 1-1 G$ CNAME T$
`
	want := []string{
		`_ipp._tcp.example.com. Office\032Printer._ipp._tcp.example.com.`, `G1.example.com. T1.example.com.`, `h.example.com. 1 Svc.Example.NET. alpn="h2"`,
		`mail.example.com. 10 MX1.example.com.`, `Office\032Printer._ipp._tcp.example.com. "Note=X"`, `Office\032Printer._ipp._tcp.example.com. 0 0 631 Printer.example.com.`,
		`Www.example.com. 192.0.2.1, 192.0.2.2`, `x.example.com. CDN.Example.NET.`,
	}
	for _, asEndpoints := range []bool{false, true} {
		report := &differenceReport{}
		r := newContentReader("example.com.", wire.Limits{Records: 100, Bytes: 1 << 20}, report, func(int) {})
		if err := r.readZoneFile(strings.NewReader(zone), stdinName, ""); err != nil {
			t.Fatal(err)
		}
		content, err := r.finish()
		if err != nil {
			t.Fatal(err)
		}
		m := &manifestBuilder{content: content, report: report, asEndpoints: asEndpoints}
		if err := m.build(); err != nil || report.count() > 0 {
			t.Fatalf("%v: %v", err, report.all)
		}
		published, err := source.Build(m.zone, m.objects, source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for set := range published.All() {
			if set.Name != "example.com." && set.Name != "ns1.example.com." {
				got = append(got, set.SpelledName()+" "+strings.Join(spelledValues(set), ", "))
			}
		}
		slices.Sort(got)
		if wanted := slices.Sorted(slices.Values(want)); !slices.Equal(got, wanted) {
			t.Errorf("endpoints: %t: published are\n%s\nwant\n%s", asEndpoints, strings.Join(got, "\n"), strings.Join(wanted, "\n"))
		}
	}
}

package zonefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// FuzzZoneName: a name that is accepted stays inside the directory and the quotes that it is put into.
func FuzzZoneName(f *testing.F) {
	for _, seed := range []string{"example.com.", "0/25.2.0.192.in-addr.arpa", "../etc/passwd", `a"b`, `a\046b`, "ä.example", "a..b", " a", strings.Repeat("a.", 126) + "b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		zone, err := ParseName("zoneName", name)
		if err != nil {
			return
		}
		if strings.ContainsAny(zone, "\"\\ ;{}\n\t") {
			t.Errorf("%q becomes %q", name, zone)
		}
		stem := fileStem(zone)
		if filepath.Base(stem) != stem || strings.HasPrefix(stem, ".") || len(stem)+len(".zone.signed.jnl.new") > 255 {
			t.Errorf("%q has files %q", zone, stem)
		}
	})
}

// FuzzRecord: a record that is accepted is one line of a zone file that reads back as the same record.
func FuzzRecord(f *testing.F) {
	for _, seed := range [][3]string{
		{"www", "A", "192.0.2.1"}, {"@", "TXT", `"a" "b;c"`}, {"x", "TXT", `a\"b`}, {"*", "CNAME", "www"}, {"a b", "A", "192.0.2.1"},
		{"@", "MX", "10 mail"}, {"x", "TXT", "(\"a\""}, {"$INCLUDE", "A", "192.0.2.1"}, {"x", "TYPE65534", `\# 1 00`}, {";x", "A", "192.0.2.1"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, name, kind, value string) {
		c := zoneContent{origin: "example.", ttl: 60}
		rr, err := c.parseRecord(bindcar.Record{Name: name, Type: kind, Value: value})
		if err != nil {
			return
		}
		line := rr.String()
		if strings.ContainsAny(line, "\r\n") {
			t.Fatalf("%q has more than one line", line)
		}
		parser := dns.NewZoneParser(strings.NewReader(line+"\n"), ".", "")
		again, ok := parser.Next()
		if !ok || again.String() != line {
			t.Errorf("%q reads back as %v: %v", line, again, parser.Err())
		}
		if _, more := parser.Next(); more {
			t.Errorf("%q is more than one record", line)
		}
	})
}

func TestFileStem(t *testing.T) {
	long := strings.Repeat("a.", 125) + "b"
	other := strings.Repeat("a.", 125) + "c"
	cases := map[string]string{
		"example.com":            "example.com",
		"0/25.2.0.192.in-addr.a": "0%2f25.2.0.192.in-addr.a",
		"_tcp.example":           "_tcp.example",
	}
	for zone, want := range cases {
		if got := fileStem(zone); got != want {
			t.Errorf("%s: %s", zone, got)
		}
	}
	if a, b := fileStem(long), fileStem(other); a == b || len(a) > maxStem || len(b) > maxStem {
		t.Errorf("long names: %s, %s", a, b)
	}
}

// Descriptions are counted again when the directory has changed, and only then.
func TestCountDescriptions(t *testing.T) {
	dir := &Dir{Path: t.TempDir()}
	// write changes the directory, at that time as far as anybody can see.
	write := func(name string, at time.Time) {
		t.Helper()
		if err := errors.Join(dir.SaveDescription(Description{Name: name}), os.Chtimes(dir.Path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	require := func(want int, when string) {
		t.Helper()
		if got, err := dir.CountDescriptions(); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", when, got, err, want)
		}
	}
	long, now := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	require(0, "empty")
	write("a.example", long)
	require(1, "one")
	write("b.example", long)
	require(1, "no change can be seen")
	write("c.example", long.Add(time.Nanosecond))
	require(3, "changed")
	write("d.example", now)
	require(4, "changed just now")
	write("e.example", now)
	require(5, "changed twice in a tick")
	if err := errors.Join(dir.Files("a.example").Remove(), os.Chtimes(dir.Path, long, long)); err != nil {
		t.Fatal(err)
	}
	require(4, "one less")
	dir.Path += "/none"
	if _, err := dir.CountDescriptions(); err == nil {
		t.Error("a directory that is not there has descriptions")
	}
}

// BenchmarkZoneFile writes a zone of 100,000 records.
func BenchmarkZoneFile(b *testing.B) {
	zone := bindcar.CreateZone{ZoneConfig: bindcar.ZoneConfig{SOA: &bindcar.SOA{PrimaryNS: "ns1.large.example.", AdminEmail: "hostmaster@large.example", Serial: 1}}}
	for i := range 100_000 {
		zone.ZoneConfig.Records = append(zone.ZoneConfig.Records, bindcar.Record{Name: fmt.Sprintf("h%d", i), Type: "A", Value: "192.0.2.1"})
	}
	file := b.TempDir() + "/zone"
	for b.Loop() {
		if err := Write(file, "large.example", zone.ZoneConfig); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDescriptions reads how 10,000 zones were added: all of them once, and again when one has changed.
func BenchmarkDescriptions(b *testing.B) {
	dir := &Dir{Path: b.TempDir()}
	write := func(i int) {
		d := Description{Name: fmt.Sprintf("z%d.example", i), Type: bindcar.Primary, AlsoNotify: []string{"192.0.2.1:53", "192.0.2.2:53"}, NoticeAddress: "127.0.0.1:9954"}
		if err := dir.SaveDescription(d); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 10_000 {
		write(i)
	}
	for _, name := range []string{"first", "again"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if name == "first" {
					dir.cached = nil
				}
				write(7)
				if all, _, err := dir.LoadDescriptions(); err != nil || len(all) != 10_000 {
					b.Fatal(len(all), err)
				}
			}
		})
	}
}

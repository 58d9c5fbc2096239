package bindcar

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// FuzzZoneName: a name that is accepted stays inside the directory and the quotes that it is put into.
func FuzzZoneName(f *testing.F) {
	for _, seed := range []string{"example.com.", "0/25.2.0.192.in-addr.arpa", "../etc/passwd", `a"b`, `a\046b`, "ä.example", "a..b", " a", strings.Repeat("a.", 126) + "b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		zone, err := zoneName("zoneName", name)
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
		rr, err := c.record(Record{Name: name, Type: kind, Value: value})
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

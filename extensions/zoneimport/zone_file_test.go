package zoneimport

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/masterfile"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

const start = "@ 3600 SOA ns1 hostmaster 7 3600 600 86400 60\n@ 3600 NS ns1\n"

// readFiles reads the file "zone" of some files as example.com. It returns what was read, a line for each RRset.
func readFiles(t testing.TB, files map[string]string, includeFrom string) (lines []string, report *differenceReport, err error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if includeFrom != "" {
		includeFrom = filepath.Join(dir, includeFrom)
	}
	report = &differenceReport{}
	r := newContentReader("example.com.", wire.Limits{Records: 100_000, Bytes: 64 << 20}, report, func(int) {})
	if err := r.readZoneFile(nil, filepath.Join(dir, "zone"), includeFrom); err != nil {
		return nil, report, fmt.Errorf("%s", strings.ReplaceAll(err.Error(), dir+"/", ""))
	}
	content, err := r.finish()
	if err != nil {
		return nil, report, err
	}
	for _, set := range content.sets {
		if set.Type == dns.TypeNS && set.Name == "example.com." {
			continue // All have it.
		}
		place := strings.TrimPrefix(set.place.String(), dir+"/")
		lines = append(lines, fmt.Sprintf("%s %s", place, strings.ReplaceAll(set.String(), ".example.com.", "")))
	}
	return lines, report, nil
}

// Each RRset has the data that BIND reads, and the line on which it begins.
func TestReadZoneFile(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		want  []string
	}{
		"plain":                         {map[string]string{"zone": start + "www 300 A 192.0.2.1\n"}, []string{"zone:3 www 300 A 192.0.2.1"}},
		"no line feed at the end":       {map[string]string{"zone": start + "www 300 A 192.0.2.1"}, []string{"zone:3 www 300 A 192.0.2.1"}},
		"carriage returns":              {map[string]string{"zone": strings.ReplaceAll(start+"www 300 A 192.0.2.1\n", "\n", "\r\n")}, []string{"zone:3 www 300 A 192.0.2.1"}},
		"$TTL":                          {map[string]string{"zone": "$TTL 1h\n" + start + "www A 192.0.2.1\n$TTL 1d\nmail A 192.0.2.2\n"}, []string{"zone:6 mail 86400 A 192.0.2.2", "zone:4 www 3600 A 192.0.2.1"}},
		"the SOA's minimum":             {map[string]string{"zone": "@ SOA ns1 h 7 3600 600 86400 77\n NS ns1\nwww A 192.0.2.1\n"}, []string{"zone:3 www 77 A 192.0.2.1"}},
		"the last TTL":                  {map[string]string{"zone": start + "www 55 A 192.0.2.1\nmail A 192.0.2.2\n"}, []string{"zone:4 mail 55 A 192.0.2.2", "zone:3 www 55 A 192.0.2.1"}},
		"classes":                       {map[string]string{"zone": start + "www IN 300 A 192.0.2.1\nmail 300 IN A 192.0.2.2\n"}, []string{"zone:4 mail 300 A 192.0.2.2", "zone:3 www 300 A 192.0.2.1"}},
		"comments and blank lines":      {map[string]string{"zone": "; (a zone\n\n" + start + "\n; \"x\n  ; y\nwww 300 A 192.0.2.1 ; (\n\n\nmail 300 A 192.0.2.2\n"}, []string{"zone:11 mail 300 A 192.0.2.2", "zone:8 www 300 A 192.0.2.1"}},
		"parentheses":                   {map[string]string{"zone": "@ 3600 SOA ns1 hostmaster (\n 7 ; serial\n 3600 600 ; )\n 86400 60 )\n@ 3600 NS ns1\ntxt 300 TXT ( \"a\"\n \"b\" )\nwww 300 A 192.0.2.1\n"}, []string{`zone:6 txt 300 TXT "a" "b"`, "zone:8 www 300 A 192.0.2.1"}},
		"quotes":                        {map[string]string{"zone": start + "txt 300 TXT \"a ; ( b\" \"\\\"\"\nwww 300 A 192.0.2.1\n"}, []string{`zone:3 txt 300 TXT "a ; ( b" "\""`, "zone:4 www 300 A 192.0.2.1"}},
		"escaped":                       {map[string]string{"zone": start + "a\\;b 300 A 192.0.2.1\nc\\(d 300 A 192.0.2.1\nwww 300 A 192.0.2.1\n"}, []string{`zone:3 a\;b 300 A 192.0.2.1`, `zone:4 c\(d 300 A 192.0.2.1`, "zone:5 www 300 A 192.0.2.1"}},
		"@, relative and absolute":      {map[string]string{"zone": start + "@ 300 A 192.0.2.1\n 300 MX 10 mail\nwww.example.com. 300 CNAME @\n$ORIGIN sub\nx 300 CNAME y\n"}, []string{"zone:3 example.com. 300 A 192.0.2.1", "zone:4 example.com. 300 MX 10 mail", "zone:7 x.sub 300 CNAME y.sub", "zone:5 www 300 CNAME example.com."}},
		"the same owner":                {map[string]string{"zone": start + "www 300 A 192.0.2.1\n    300 A 192.0.2.2\n\tAAAA 2001:DB8::1\n"}, []string{"zone:3 www 300 A 192.0.2.1, 192.0.2.2", "zone:5 www 300 AAAA 2001:db8::1"}},
		"duplicates, and TTLs at odds":  {map[string]string{"zone": start + "www 300 A 192.0.2.2\nwww 600 A 192.0.2.1\nwww 300 A 192.0.2.2\n"}, []string{"zone:3 www 300 A 192.0.2.1, 192.0.2.2"}},
		"upper case":                    {map[string]string{"zone": start + "WWW 300 CNAME Mail\n"}, []string{"zone:3 www 300 CNAME mail"}},
		"unknown notation of a type":    {map[string]string{"zone": start + "www 300 TYPE1 \\# 4 C0000201\n"}, []string{"zone:3 www 300 A 192.0.2.1"}},
		"$GENERATE":                     {map[string]string{"zone": start + "; hosts\n$GENERATE 1-2 host-$ 300 A 192.0.2.$\nwww 300 A 192.0.2.9\n"}, []string{"zone:4 host-1 300 A 192.0.2.1", "zone:4 host-2 300 A 192.0.2.2", "zone:5 www 300 A 192.0.2.9"}},
		"$GENERATE with a format":       {map[string]string{"zone": start + "$GENERATE 8-10/2 h${0,3,x} 300 A 192.0.2.${-8}\n"}, []string{"zone:3 h008 300 A 192.0.2.0", "zone:3 h00a 300 A 192.0.2.2"}},
		"$INCLUDE":                      {map[string]string{"zone": start + "$INCLUDE hosts ; ours\nwww 300 A 192.0.2.9\n", "hosts": "\n\na 300 A 192.0.2.1\n"}, []string{"hosts:3 a 300 A 192.0.2.1", "zone:4 www 300 A 192.0.2.9"}},
		"$INCLUDE with an origin":       {map[string]string{"zone": start + "$INCLUDE hosts lab\nwww 300 A 192.0.2.9\n", "hosts": "a 300 A 192.0.2.1\n"}, []string{"hosts:1 a.lab 300 A 192.0.2.1", "zone:4 www 300 A 192.0.2.9"}},
		"$INCLUDE in an included file":  {map[string]string{"zone": start + "$INCLUDE \"sub/one\"\nwww 300 A 192.0.2.9\n", "sub/one": "$include \"sub/two\" ; \"\na 300 A 192.0.2.1\n", "sub/two": "; x\nb 300 A 192.0.2.2\n"}, []string{"sub/one:2 a 300 A 192.0.2.1", "sub/two:2 b 300 A 192.0.2.2", "zone:4 www 300 A 192.0.2.9"}},
		"$INCLUDE with a complete name": {map[string]string{"zone": start + "$INCLUDE DIR/hosts\n", "hosts": "a 300 A 192.0.2.1\n"}, []string{"hosts:1 a 300 A 192.0.2.1"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, report, err := readFiles(t, tc.files, ".")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("want (-), got (+):\n%s", d)
			}
			if len(report.all) > 0 {
				t.Errorf("differences: %v", report.all)
			}
		})
	}
}

// Whatever is wrong with a file has file, line and remedy.
func TestZoneFileErrors(t *testing.T) {
	include := map[string]string{"zone": start + "\n$INCLUDE hosts\n", "hosts": "\nwww 300 A 192.0.2.300\n"}
	tests := map[string]struct {
		files       map[string]string
		includeFrom string
		want        []string
	}{
		"bad data":               {map[string]string{"zone": start + "\nwww 300 A 192.0.2.300\n"}, "", []string{`zone:4: A: "192.0.2.300" is not an IPv4 address`, "named-checkzone example.com. ", "zone says"}},
		"bad type":               {map[string]string{"zone": start + "www 300 NONSENSE x\n"}, "", []string{"zone:3: ", "NONSENSE"}},
		"no data":                {map[string]string{"zone": start + "www 300 A\n"}, "", []string{"zone:3: A: the data ends where an IPv4 address belongs"}},
		"byte order mark":        {map[string]string{"zone": "\xef\xbb\xbf" + start}, "", []string{"zone:1: the file begins with a byte order mark"}},
		"in a parenthesis":       {map[string]string{"zone": start + "www 300 TXT ( \"a\"\n \"b\" \n"}, "", []string{"zone:3: "}},
		"an open quote":          {map[string]string{"zone": start + "www 300 TXT \"a\n"}, "", []string{"zone:3: "}},
		"no TTL":                 {map[string]string{"zone": "@ NS ns1\n@ SOA ns1 h 7 3600 600 86400 77\n"}, "", []string{"zone:1: the record has no TTL", "begin the file with a $TTL"}},
		"no SOA":                 {map[string]string{"zone": "@ 300 NS ns1\n"}, "", []string{"no SOA record of example.com."}},
		"no NS":                  {map[string]string{"zone": "@ 300 SOA ns1 h 7 3600 600 86400 77\n"}, "", []string{"no NS records"}},
		"another zone":           {map[string]string{"zone": "$ORIGIN example.net.\n" + start}, "", []string{"no SOA record of example.com.", "zone:2 is the SOA record of example.net.", "import that zone"}},
		"two SOAs":               {map[string]string{"zone": start + "@ 3600 SOA ns1 other 7 3600 600 86400 60\n"}, "", []string{"zone:3: the zone has a second SOA record"}},
		"$INCLUDE":               {include, "", []string{"zone:4: $INCLUDE reads other files", "--include-from"}},
		"in an included file":    {include, ".", []string{`hosts:2: A: "192.0.2.300"`}},
		"an included file gone":  {map[string]string{"zone": start + "$INCLUDE gone\n"}, ".", []string{`zone:3: $INCLUDE "gone": there is no such file in `}},
		"out of the folder":      {map[string]string{"zone": start + "$INCLUDE ../secret\n", "secret": "root:x:0\n", "in/x": ""}, "in", []string{`zone:3: $INCLUDE "../secret": openat ../secret: path escapes`}},
		"out of it, by its name": {map[string]string{"zone": start + "$INCLUDE DIR/secret\n", "secret": "root:x:0\n", "in/x": ""}, "in", []string{`secret": there is no such file in `}},
		"endless":                {map[string]string{"zone": start + "$INCLUDE zone\n"}, ".", []string{"zone:3: 32 files include each other"}},
		"too many records":       {map[string]string{"zone": start + strings.Repeat("$GENERATE 0-65535 h$ 300 A 192.0.2.1\n", 2)}, "", []string{"zone:4: the zone exceeds the limit of 100000 records, which --max-zone-records sets"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := readFiles(t, tc.files, tc.includeFrom)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "root:") {
				t.Errorf("%q has what is in a file outside the folder", err)
			}
		})
	}
}

// A link does not lead out of the folder either.
func TestIncludeFollowsNoLinkOut(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("www 300 A 192.0.2.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	r := newContentReader("example.com.", wire.Limits{Records: 100, Bytes: 1 << 20}, &differenceReport{}, func(int) {})
	err := r.readZoneFile(strings.NewReader(start+"$INCLUDE link\n"), stdinName, dir)
	if err == nil || !strings.Contains(err.Error(), `<stdin>:3: $INCLUDE "link": openat link: path escapes`) {
		t.Errorf("%v", err)
	}
}

// What is left out while a file is read.
func TestOtherDataInFile(t *testing.T) {
	_, report, err := readFiles(t, map[string]string{"zone": start + "www.example.net. 300 A 192.0.2.1\nwww 300 CH A 192.0.2.1\n"}, "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[rrset.Key]string{}
	for _, d := range report.all {
		got[d.key] = d.text
	}
	want := []string{"www.example.com.", "www.example.net."}
	names := []string{}
	for key := range maps.Keys(got) {
		names = append(names, key.Name)
	}
	slices.Sort(names)
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("want (-), got (+):\n%s\n%v", d, got)
	}
}

// No file makes the reader fail in another way than with an error that has a place.
func FuzzReadZoneFile(f *testing.F) {
	for _, seed := range []string{start + "www 300 A 192.0.2.1\n", "$TTL 1h\n$ORIGIN x\n", "$GENERATE 1-2 a$ A 192.0.2.$\n", "a TXT (\n\"\\\"\" ;\n)", "$INCLUDE x\n", "\\", "\"", "a CAA 0 issue \"\\\\\"\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		report := &differenceReport{}
		r := newContentReader("example.com.", wire.Limits{Records: 1000, Bytes: 1 << 20}, report, func(int) {})
		if err := r.readZoneFile(strings.NewReader(text), stdinName, ""); err != nil {
			if !strings.Contains(err.Error(), "<stdin>") && !strings.Contains(err.Error(), "standard input") {
				t.Errorf("%q has no place", err)
			}
			return
		}
		lines := strings.Count(text, "\n") + 1
		for key, set := range r.found {
			if set.place.line < 1 || set.place.line > lines {
				t.Errorf("%s is on line %d of %d", key, set.place.line, lines)
			}
		}
		content, err := r.finish()
		if err != nil {
			return
		}
		m := manifestBuilder{content: content, report: report}
		if err := m.build(); err != nil {
			return
		}
		if err := writeStream(io.Discard, m.objects); err != nil {
			t.Error(err)
		}
	})
}

// What external-dns has published is left out with its TXT records, of all forms that these have, and nothing else. A TXT record that fits no
// name is listed.
func TestWithoutExternalDNS(t *testing.T) {
	const mark = `"heritage=external-dns,external-dns/owner=default,external-dns/resource=service/shop/web"`
	encrypted := strconv.Quote(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xf1}, 120)))
	for name, c := range map[string]struct {
		zone                 string
		names                ownershipNames
		want                 []string
		published, ownership int
		unsure               []string
	}{
		"by type":         {"www A 192.0.2.1\nwww AAAA 2001:db8::1\na-www TXT " + mark + "\n", ownershipNames{}, []string{"www AAAA"}, 1, 1, nil},
		"at the name":     {"old A 192.0.2.1\nold TXT " + mark + "\n", ownershipNames{}, nil, 1, 1, nil},
		"another text":    {"old A 192.0.2.1\nold TXT " + mark + "\nold TXT \"v=spf1 -all\"\n", ownershipNames{}, []string{"old TXT"}, 1, 1, nil},
		"a dash":          {"a-b A 192.0.2.1\na-b TXT " + mark + "\n", ownershipNames{}, nil, 1, 1, nil},
		"a prefix":        {"www CNAME web\nweb A 192.0.2.1\nxdns-cname-www TXT " + mark + "\n", ownershipNames{prefix: "xdns-"}, []string{"web A"}, 1, 1, nil},
		"an owned text":   {"t TXT \"hello\"\ntxt-t TXT " + mark + "\n", ownershipNames{}, nil, 1, 1, nil},
		"nothing of it":   {"www A 192.0.2.1\nwww TXT \"heritage=mine\"\n", ownershipNames{}, []string{"www A", "www TXT"}, 0, 0, nil},
		"no record left":  {zone: "a-gone TXT " + mark + "\n", ownership: 1, unsure: []string{"a-gone"}},
		"another suffix":  {zone: "www A 192.0.2.1\na-www-own TXT " + mark + "\n", names: ownershipNames{prefix: "own-"}, want: []string{"www A"}, ownership: 1, unsure: []string{"a-www-own"}},
		"another label":   {zone: "*.apps A 192.0.2.1\na-any.apps TXT " + mark + "\n", want: []string{"*.apps A"}, ownership: 1, unsure: []string{"a-any.apps"}},
		"a suffix":        {"www A 192.0.2.1\na-www-xdns TXT " + mark + "\n", ownershipNames{suffix: "-xdns"}, nil, 1, 1, nil},
		"a label before":  {"www A 192.0.2.1\nxdns.a-www TXT " + mark + "\n", ownershipNames{prefix: "xdns."}, nil, 1, 1, nil},
		"the type in it":  {"www A 192.0.2.1\nwww AAAA 2001:db8::1\nown-aaaa.www TXT " + mark + "\n", ownershipNames{prefix: "own-%{record_type}."}, []string{"www A"}, 1, 1, nil},
		"the type behind": {"www A 192.0.2.1\nwww AAAA 2001:db8::1\nwww-aaaa-own TXT " + mark + "\n", ownershipNames{suffix: "-%{record_type}-own"}, []string{"www A"}, 1, 1, nil},
		"behind a star":   {"*.apps A 192.0.2.1\nany-a-own.apps TXT " + mark + "\n", ownershipNames{suffix: "-%{record_type}-own", wildcard: "any"}, nil, 1, 1, nil},
		"type, unknown":   {"www A 192.0.2.1\nwww-a-own TXT " + mark + "\n", ownershipNames{suffix: "-own"}, []string{"www A"}, 0, 1, []string{"www-a-own"}},
		"quotes within":   {"www A 192.0.2.1\na-www TXT \"\\\"heritage=external-dns,external-dns/owner=default\\\"\"\n", ownershipNames{}, nil, 1, 1, nil},
		"encrypted":       {"www A 192.0.2.1\na-www TXT " + encrypted + "\n", ownershipNames{}, []string{"a-www TXT", "www A"}, 0, 0, []string{"a-www"}},
		"of another name": {"www A 192.0.2.1\nkey TXT " + encrypted + "\n", ownershipNames{}, []string{"key TXT", "www A"}, 0, 0, nil},
		"a wildcard":      {"*.apps A 192.0.2.1\na-*.apps TXT " + mark + "\n", ownershipNames{}, nil, 1, 1, nil},
		"a star's label":  {"*.apps A 192.0.2.1\na-any.apps TXT " + mark + "\n", ownershipNames{wildcard: "any"}, nil, 1, 1, nil},
		"the apex":        {"@ A 192.0.2.1\n@ TXT " + mark + "\n", ownershipNames{}, nil, 1, 1, nil},
		"the zone's NS":   {"a A 192.0.2.1\n@ TXT " + mark + "\n", ownershipNames{}, []string{"a A"}, 0, 1, []string{"example.com."}},
		"mail beside it":  {"m A 192.0.2.1\nm MX 1 m\nm TXT " + mark + "\n", ownershipNames{}, []string{"m MX"}, 1, 1, []string{"m"}},
		"its own mail":    {"m A 192.0.2.1\nm MX 1 m\nm TXT " + mark + "\na-m TXT " + mark + "\nmx-m TXT " + mark + "\n", ownershipNames{}, nil, 2, 3, nil},
		"a service alone": {"s SRV 0 0 1 a\ns TXT " + mark + "\n", ownershipNames{}, nil, 1, 1, nil},
		"a deeper name":   {"www.eu A 192.0.2.1\nwww A 192.0.2.2\na-www.eu TXT " + mark + "\n", ownershipNames{}, []string{"www A"}, 1, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "zone")
			if err := os.WriteFile(file, []byte("$TTL 60\n"+start+c.zone), 0o644); err != nil {
				t.Fatal(err)
			}
			report := &differenceReport{}
			r := newContentReader("example.com.", wire.Limits{Records: 100, Bytes: 1 << 20}, report, func(int) {})
			if err := r.readZoneFile(nil, file, ""); err != nil {
				t.Fatal(err)
			}
			content, err := r.finish()
			if err != nil {
				t.Fatal(err)
			}
			published, ownership := content.withoutExternalDNS(c.names, report)
			var unsure []string
			for _, d := range report.all {
				unsure = append(unsure, strings.TrimSuffix(d.key.Name, ".example.com."))
			}
			var got []string
			for _, set := range content.sets {
				if set.Name != "example.com." {
					got = append(got, strings.TrimSuffix(set.Name, ".example.com.")+" "+dns.TypeToString[set.Type])
				}
			}
			if diff := cmp.Diff(c.unsure, unsure); diff != "" {
				t.Errorf("what is listed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || published != c.published || ownership != c.ownership {
				t.Errorf("%d and %d were left out; what is left (-want +got):\n%s", published, ownership, diff)
			}
		})
	}
}

// What a line of a file makes by itself is bounded, also of a class that no zone here has; what the report does not show it counts.
func TestReportIsBounded(t *testing.T) {
	report := &differenceReport{}
	r := newContentReader("example.com.", wire.Limits{Records: 100_000, Bytes: 1 << 30}, report, func(int) {})
	other := masterfile.Record{Key: rrset.Key{Name: "www.example.com.", Type: dns.TypeA}, Class: dns.ClassCHAOS}
	var err error
	added := 0
	for err == nil && added <= 100_001 {
		if err = r.addParsed(other); err == nil {
			added++
		}
	}
	if added != 100_000 || err == nil || !strings.Contains(err.Error(), "--max-zone-records") {
		t.Errorf("%d records of another class are read, then %v", added, err)
	}
	if len(report.all) != maxDifferences || report.count() != 100_000 {
		t.Errorf("the report has %d of %d", len(report.all), report.count())
	}
	var b strings.Builder
	report.write(&b)
	if lines := strings.Count(b.String(), "\n"); lines != maxDifferences+1 || !strings.HasSuffix(b.String(), "and 90000 more differences\n") {
		t.Errorf("%d lines, the last: %s", lines, b.String()[max(0, b.Len()-100):])
	}
}

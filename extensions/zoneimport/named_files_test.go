package zoneimport

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// namedFiles are the folders of testdata/bind: what is read of each file "zone", without the NS record and the address of ns1, or the error.
var namedFiles = map[string]struct {
	// reads are the RRsets with their places, listed what is left out, err what a refusal says.
	reads, listed []string
	err           string
	// notBIND is true if BIND does not read the file.
	notBIND bool
}{
	"date-before-an-include":                {err: `zone:6: BIND takes no $INCLUDE behind a $DATE`, notBIND: true},
	"date-that-is-none":                     {err: `zone:5: $DATE "20261301000000" is not a date`, notBIND: true},
	"e1-included-file-begins-without-owner": {reads: []string{`zone:5 a 300 A 192.0.2.1`, `i:1 a 300 TXT "x"`}},
	"e10-generate-nibbles":                  {reads: []string{`zone:6 b.a.0 300 CNAME cb.a`, `zone:5 0.1.8.b 300 PTR host10`, `zone:5 1.1.8.b 300 PTR host11`}},
	"e11-owner-in-quotes":                   {reads: []string{`zone:5 a 300 A 192.0.2.1`}},
	"e12-date":                              {},
	"e13-generate-below-zero":               {reads: []string{`zone:5 h-1 300 A 192.0.2.1`, `zone:5 h0 300 A 192.0.2.1`}},
	"e13-generate-range-over-65536":         {reads: []string{`zone:5 h70000 300 A 192.0.2.1`, `zone:5 h70001 300 A 192.0.2.1`}},
	"e14-include-with-a-blank":              {reads: []string{`a b.inc:1 b 300 A 192.0.2.2`}},
	"e2-nested-include-in-folder":           {reads: []string{`d/j:1 b 300 A 192.0.2.2`}},
	"e3-ttl-only-in-included-file":          {reads: []string{`zone:2 a 300 A 192.0.2.1`}},
	"e4-type-unknown-to-parser":             {reads: []string{`zone:5 a 300 TYPE11 \# 9 c00002010600000040`}},
	"e4-types-of-today-and-of-old": {reads: []string{
		`zone:5 a 300 TYPE11 \# 9 c00002010600000040`, `zone:10 admin 300 RP hostmaster txt`, `zone:6 b 300 TYPE38 \# 17 0020010db8000000000000000000000001`, `zone:7 c 300 TYPE22 \# 20 47000580005a0000000001e133ffffff00016200`, `zone:8 d 300 TYPE40 \# 6 010203000000`,
		`zone:9 e 300 TYPE259 \# 23 0000000100000002030a746578742f706c61696e000000`, `zone:11 www 300 A 192.0.2.80`,
	}},
	"e5-plain-form-refused":  {reads: []string{`zone:5 a 300 GPOS -32.6882 116.8652 10.0`}},
	"e6-no-addresses-in-apl": {reads: []string{`zone:5 a 300 APL `}},
	"e6-no-data":             {reads: []string{`zone:5 a 300 TYPE65280 \# 0`}},
	"e7-parameters-of-a-service": {reads: []string{
		`zone:7 _dns 300 SVCB 1 dot alpn="dot" dohpath="/dns-query{?dns}"`, `zone:5 a 300 HTTPS 1 . alpn="h2,h3" port="8443" ipv4hint="192.0.2.1,192.0.2.2"`,
		`zone:6 b 300 HTTPS 1 svc alpn="a\\\044b,c" key65333="x\ y\;("`, `zone:8 c 300 HTTPS 1 . alpn="h2" no-default-alpn=""`,
		`zone:10 g1 300 HTTPS 1 . alpn="h2" port="8441"`, `zone:10 g2 300 HTTPS 1 . alpn="h2" port="8442"`,
	}},
	"e7-words-for-numbers": {reads: []string{
		`zone:5 a 300 LOC 52 22 0.000 N 04 53 0.000 E -2m 1m 10000m 10m`, `zone:6 b 300 CERT IPIX 1 RSASHA1-NSEC3-SHA1 AQID`,
		`zone:9 c 300 NAPTR 100 10 "" "" "/urn:cid:.+@([^\\.]+\\.)(.*)$/\\2/i" .`, `zone:7 sub 300 NS ns1`,
		`zone:8 sub 300 DS 1 13 2 00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF`,
	}},
	"e7-short-and-quoted-words": {reads: []string{
		`zone:5 a 300 EUI48 01-02-03-04-05-06`, `zone:6 b 300 HTTPS 1 Svc alpn="h2"`, `zone:7 c 300 NAPTR 100 10 "u" "E2U+sip" "!^\\+([[:digit:]]+)$!sip:\\1@x!i" .`,
	}},
	"r9-words-that-a-type-lacks":        {listed: []string{"zone:5 a URI", "zone:6 b HINFO", "zone:7 c TLSA", "zone:8 d LOC"}, notBIND: true},
	"e7-naptr-without-quotes":           {reads: []string{`zone:5 a 300 NAPTR 10 100 "s" "http+N2L" "" www`}},
	"e8-generate-as-in-BINDs-manual":    {reads: []string{`zone:5 h1 300 MX 0 .`, `zone:5 h2 300 MX 0 .`}},
	"e8-srv-and-caa-by-generate":        {reads: []string{`zone:5 h1 300 SRV 0 0 1 .`, `zone:6 h1 300 CAA 0 issue "ca1.example.net"`}},
	"e9-line-end-between-numbers":       {reads: []string{`zone:5 a 300 MX 10 www`}},
	"e9-no-blank-before-a-parenthesis":  {reads: []string{`zone:5 a 300 A 192.0.2.1`}},
	"export-of-microsoft-dns":           {reads: []string{`zone:8 _nfsv4idmapdomain 86400 TXT "example.com"`, `zone:9 hostname001 1200 A 192.0.2.240, 192.0.2.241`}, notBIND: true},
	"export-of-microsoft-dns-with-wins": {reads: []string{`zone:13 host 1200 A 192.0.2.240`, `zone:14 old 1200 A 192.0.2.241`}, listed: []string{`zone:12 example.com. TYPE65281`}, notBIND: true},
	"export-of-powerdns":                {reads: []string{`zone:7 www 3600 A 192.0.2.80`}, listed: []string{`zone:5 example.com. TYPE65401`, `zone:6 dyn TYPE65402`}, notBIND: true},
	"export-of-route-53-by-cli53":       {reads: []string{`zone:8 geo 300 A 192.0.2.2`, `zone:6 www 300 A 192.0.2.80`}, listed: []string{`zone:5 example.com. TYPE65401`, `zone:7 docs TYPE65401`}, notBIND: true},
	"printed-by-dig":                    {reads: []string{`zone:8 _dmarc 300 TXT "v=DMARC1; p=none"`, `zone:9 www 300 A 192.0.2.80`}, listed: []string{`zone:11 import. TSIG`}, notBIND: true},
	"last-ttl-of-an-old-file":           {reads: []string{`zone:4 www 86400 A 192.0.2.80`}},
	"minimum-of-an-old-file":            {reads: []string{`zone:5 mail 300 A 192.0.2.25`, `zone:4 www 300 A 192.0.2.80`}},
	"r1-string-over-255":                {err: `zone:5: TXT: a text has 256 bytes, more than 255`, notBIND: true},
	"r2-escape-over-255":                {err: `zone:5: TXT: "x\\256" has the escape \256`, notBIND: true},
	"r3-line-end-in-quotes":             {err: `zone:5: a quote is not closed`, notBIND: true},
	"r9-bytes-after-rfc3597":            {listed: []string{`zone:5 a TYPE65280`}, notBIND: true},
	"r9-broken-expression":              {err: `zone:6: NAPTR: the expression of its substitution, "^[[:number:]]+$", is none: "number" is no class, such as [:digit:]`, notBIND: true},
	"r9-generate-without-quotes":        {err: `zone:5: "m$" is more than $GENERATE takes; put data that has blanks in quotes`, notBIND: true},
	"r9-unit-of-a-ttl":                  {err: `zone:5: "1y" is neither a TTL, a class nor a known type`, notBIND: true},
	"s1-generate-default-ttl":           {reads: []string{`zone:5 g1 300 A 192.0.2.1`, `zone:5 g2 300 A 192.0.2.2`}},
	"s2-soa-minimum-forgotten":          {reads: []string{`zone:4 a 500 A 192.0.2.1`, `zone:5 b 60 A 192.0.2.2`}},
	"s3-last-ttl-of-included-file":      {reads: []string{`i:1 a 55 A 192.0.2.1`, `zone:5 b 55 A 192.0.2.2`}},
	"s3-ttl-of-included-file":           {reads: []string{`zone:6 b 55 A 192.0.2.2`}},
	"s4-line-end-in-parentheses":        {reads: []string{`zone:5 a 300 TXT "x" "y"`}},
	"s5-generate-splits-texts":          {reads: []string{`zone:5 g1 300 TXT "t" "1"`}},
	"s6-last-ttl-of-generate":           {reads: []string{`zone:5 b 222 A 192.0.2.2`, `zone:4 g1 222 A 192.0.2.1`, `zone:4 g2 222 A 192.0.2.2`}},
	"s7-ttl-over-31-bits":               {reads: []string{`zone:5 a 0 A 192.0.2.1`}},
	"s8-ttl-of-the-rrset":               {reads: []string{`zone:6 b 100 A 192.0.2.3`, `zone:4 h 100 A 192.0.2.1, 192.0.2.2`}},
	"utf-16-be":                         {err: `zone:1: the file is in UTF-16: save it as UTF-8 without a byte order mark`, notBIND: true},
	"utf-16-le":                         {err: `zone:1: the file is in UTF-16: save it as UTF-8 without a byte order mark`, notBIND: true},
	"utf-16-without-mark":               {err: `zone:1: there is a byte 0 outside of quotes: the file is not text, or not in ASCII or UTF-8`, notBIND: true},
	"utf-8-with-byte-order-mark":        {err: `zone:1: the file begins with a byte order mark: save it as UTF-8 without one`, notBIND: true},
}

// Zone files by which tools and BIND differ: s… are read by other tools and mean something else there, r… are read there and refused by
// BIND, e… are refused there and read by BIND. Each is here what it is for BIND; the others show what BIND does not take, and what is done then.
func TestNamedZoneFiles(t *testing.T) {
	judge, err := exec.LookPath("named-compilezone")
	if err != nil {
		t.Fatal("this test needs named-compilezone: `apt-get install bind9-utils`")
	}
	folders, err := os.ReadDir("testdata/bind")
	if err != nil || len(folders) != len(namedFiles) {
		t.Errorf("%d folders, %d expectations: %v", len(folders), len(namedFiles), err)
	}
	for name, tc := range namedFiles {
		t.Run(name, func(t *testing.T) {
			files := readFolder(t, filepath.Join("testdata/bind", name))
			lines, report, err := readFiles(t, files, ".")
			lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, " ns1 ") && strings.Contains(line, "192.0.2.53") })
			if d := cmp.Diff(tc.reads, lines, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("read: want (-), got (+):\n%s", d)
			}
			if err == nil && tc.err != "" || err != nil && (tc.err == "" || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%v, want %q", err, tc.err)
			}
			var listed []string
			for _, d := range report.all {
				listed = append(listed, strings.TrimPrefix(d.place.String(), filepath.Dir(d.place.source)+"/")+" "+strings.ReplaceAll(d.key.String(), ".example.com.", ""))
			}
			if d := cmp.Diff(tc.listed, listed); d != "" {
				t.Errorf("listed: want (-), got (+):\n%s", d)
			}
			problem, refused := compareFiles(t, judge, t.TempDir(), files)
			if problem != "" || refused != tc.notBIND {
				t.Errorf("BIND refuses it: %t, want %t; %s", refused, tc.notBIND, problem)
			}
		})
	}
}

// readFolder returns the files of a folder by their names in it.
func readFolder(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, folder+"/")] = string(text)
		return err
	})
	if err != nil || files["zone"] == "" {
		t.Fatalf("%s has no zone: %v", folder, err)
	}
	return files
}

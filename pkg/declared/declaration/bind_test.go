package declaration

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// TestDataLikeBIND: testdata/data.txt has data by type. What begins with + is taken and means what BIND says, what begins with - is refused by
// both: one record that a server does not take would keep it from the whole update.
func TestDataLikeBIND(t *testing.T) {
	judge, err := exec.LookPath("named-compilezone")
	if err != nil {
		t.Fatal("this test needs named-compilezone: `apt-get install bind9-utils`")
	}
	compile := func(t *testing.T, form, records string) (zone string, err error) {
		zone = filepath.Join(t.TempDir(), "zone")
		if err := os.WriteFile(zone, []byte("$TTL 1\n@ SOA a. b. 1 2 3 4 5\n@ NS a.\n"+records), 0o600); err != nil {
			t.Fatal(err)
		}
		output, err := exec.CommandContext(t.Context(), judge, "-i", "none", "-k", "ignore", "-f", "text", "-F", form, "-s", "full", "-o", zone+".plain",
			"example.com", zone).CombinedOutput()
		if err != nil {
			return string(output), err
		}
		text, err := os.ReadFile(zone + ".plain")
		return string(text), err
	}
	corpus, err := os.ReadFile(filepath.Join("testdata", "data.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var taken []string
	for line := range strings.SplitSeq(strings.TrimSpace(string(corpus)), "\n") {
		sign, record := line[0], line[1:]
		mnemonic, text, _ := strings.Cut(record, " ")
		switch d := typedValues(mnemonic, []string{text}, "example.com."); {
		case sign == '+' && d.err != nil:
			t.Errorf("%s: %v", record, d.err)
		case sign == '+':
			taken = append(taken, record)
		case d.err == nil:
			t.Errorf("%s is taken as %q", record, d.rdata)
		default:
			t.Run(record, func(t *testing.T) {
				t.Parallel()
				if plain, err := compile(t, "text", "x "+record+"\n"); err == nil {
					t.Errorf("BIND takes it: %s", plain)
				}
			})
		}
	}
	var records strings.Builder
	for i, record := range taken {
		fmt.Fprintf(&records, "x%d %s\n", i, record)
	}
	plain, err := compile(t, "text", records.String())
	if err != nil {
		t.Fatal(plain)
	}
	raw, err := compile(t, "raw", records.String())
	if err != nil {
		t.Fatal(raw)
	}
	wire := readRaw(t, raw)
	values := map[string]string{}
	for line := range strings.Lines(plain) {
		fields := strings.Fields(line)
		rrtype, known := rrset.ParseType(fields[3])
		if !known {
			t.Fatal(line)
		}
		_, text, _ := strings.Cut(line, "\tIN ")
		text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), fields[3]))
		if values[fields[0]], err = rrset.Parse(rrset.Key{Type: rrtype}, text); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for i, record := range taken {
		mnemonic, text, _ := strings.Cut(record, " ")
		d := typedValues(mnemonic, []string{text}, "example.com.")
		if want := values[fmt.Sprintf("x%d.example.com.", i)]; d.rdata[0] != want {
			t.Errorf("%s: %q, and BIND has %q", record, d.rdata[0], want)
		}
		const head = 1 + 2 + 2 + 4 + 2 // the root, type, class, TTL, length
		sent, n := make([]byte, dns.MaxMsgSize), head
		rr, err := rrset.ToRR(rrset.Key{Name: ".", Type: d.rrtype}, 0, cmp.Or(d.spelled[d.rdata[0]], d.rdata[0]))
		if err == nil {
			n, err = dns.PackRR(rr, sent, 0, nil, false)
		}
		if want := wire[fmt.Sprintf("x%d.example.com.", i)]; err != nil || hex.EncodeToString(sent[head:n]) != want {
			t.Errorf("%s: the bytes %x, %v, and BIND has %s", record, sent[head:n], err, want)
		}
	}
}

// readRaw reads BIND's raw form of a zone: the bytes of the last record of each name in hexadecimal.
func readRaw(t *testing.T, zone string) map[string]string {
	t.Helper()
	const fileHeader, setHeader = 24, 20
	number := func(off, size int) (n int) {
		for _, c := range []byte(zone[off : off+size]) {
			n = n<<8 | int(c)
		}
		return n
	}
	found := map[string]string{}
	for off := fileHeader; off < len(zone); {
		// Of a set: its size, class, type, covered type, TTL and number of records, and the size of its name.
		end, count, at := off+number(off, 4), number(off+14, 4), off+setHeader+number(off+18, 2)
		name, _, err := dns.UnpackDomainName([]byte(zone[off+setHeader:at]), 0)
		if err != nil {
			t.Fatal(err)
		}
		for range count {
			size := number(at, 2)
			found[name] = hex.EncodeToString([]byte(zone[at+2 : at+2+size]))
			at += 2 + size
		}
		off = end
	}
	return found
}

// TestMessagesOfData: whoever wrote data that cannot be read is told what is wrong with it, and what to write.
func TestMessagesOfData(t *testing.T) {
	for record, want := range map[string]string{
		`HTTPS 1 . alpn="h3,h2" ech="AEX+"x`: `"ech=\"AEX+\"x" cannot be read: ech has base64 with its final = signs`,
		`HTTPS 1 . ech=AEX`:                  `"ech=AEX" cannot be read: ech has base64`,
		`HTTPS 1 . alpn=h2, h3`:              `"alpn=h2," cannot be read: alpn has protocols without blanks between them, as in alpn=h2,h3`,
		`HTTPS 1 . no-default-alpn=x`:        "no-default-alpn has no value",
		`HTTPS 1 . alpn=h2 alpn=h3`:          "the parameter alpn is there twice",
		`HTTPS 1 . ALPN=h2`:                  "keys are in lower case",
		`HTTPS www.example.com.`:             "the data is priority, target and parameters, as in 1 . alpn=h2,h3",
		`SSHFP 4 2 12:34`:                    "fingerprint in hexadecimal without colons",
		`TLSA 3 1 1`:                         "the data is usage, selector, matching type and the data in hexadecimal",
		`HINFO Intel`:                        `the data is two texts, as in "Intel" "Linux"`,
		`NAPTR 100 10 u E2U+sip "!a!b" .`:    "the substitution is not !expression!replacement!",
		`TYPE65280 hello`:                    `data of this type is written as bytes: \# LENGTH HEX`,
		`TYPE65280 \# 4 0a`:                  `behind \# belong the number of bytes and these in hexadecimal`,
		`MX 10 mail x`:                       `MX rdata "10 mail x": expected 2 fields`,
		`SSHFP host IN SSHFP 4 3 ab`:         `"host IN SSHFP 4 3 ab" is a line of a zone file; write its data alone: 4 3 ab`,
		`TLSA 300 IN TLSA 3 1 1 ab`:          "write its data alone: 3 1 1 ab",
		`MX @ 300 in mx 10 mail`:             "write its data alone: 10 mail",
		`A www A 192.0.2.1`:                  "write its data alone: 192.0.2.1",
	} {
		mnemonic, text, _ := strings.Cut(record, " ")
		if d := typedValues(mnemonic, []string{text}, "example.com."); d.err == nil || !strings.Contains(d.err.Error(), want) {
			t.Errorf("%s: %v %q, want %q", record, d.err, d.rdata, want)
		}
	}
	if _, err := OwnerName("www.example.com", "example.com"); err == nil || !strings.HasSuffix(err.Error(), `; write "www"`) {
		t.Error(err)
	}
	if d := endpointValues(52, []string{"_443._tcp.www IN TLSA 3 1 1 ab"}); d.err == nil || !strings.Contains(d.err.Error(), "write its data alone: 3 1 1 ab") {
		t.Error(d.err)
	}
}

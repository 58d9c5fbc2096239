package zonefile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// named reads every record that is written, also data whose usual text it does not know. Otherwise it would not load the zone.
func TestNamedReadsEveryType(t *testing.T) {
	judge, err := exec.LookPath("named-compilezone")
	if err != nil {
		t.Fatal("this test needs named-compilezone: `apt-get install bind9-utils`")
	}
	ttl := uint32(60)
	config := bindcar.ZoneConfig{SOA: &bindcar.SOA{PrimaryNS: "ns.example.net.", AdminEmail: "admin.example.net.", Serial: 1, Refresh: 1, Retry: 1, Expire: 1, NegativeTTL: 1}}
	for i, value := range []string{
		"CERT IPIX 1 RSASHA1-NSEC3-SHA1 AQID", `CERT 254 0 12 AQID`, `HTTPS 1 . alpn="h2" ohttp=""`, `HTTPS 1 . dohpath="/q{?dns}" key9="x\ y"`, `NULL \# 2 00ff`,
		`UID \# 4 00000001`, "NID 10 0014:4fff:ff20:ee64", "LOC 52 22 0.000 N 04 53 0.000 E -2m 1m 10000m 10m", `NAPTR 10 100 "s" "http+N2L" "" www`,
		`TYPE65280 \# 0`, `TXT "a\"b" ";"`, "MX 10 Mail", "APL 1:192.0.2.1/24", `URI 1 1 "a\\b"`, `SVCB \# 8 000100ffff000178`, `TYPE262 \# 6 034254430178`, "WALLET BTC x", "LOC 51 N 0 E 1.m", `CAA 0 issue "x"`, "RP a b", "DS 1 7 2 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	} {
		rrtype, data, _ := strings.Cut(value, " ")
		config.Records = append(config.Records, bindcar.Record{Name: fmt.Sprintf("h%d", i), Type: rrtype, Value: data, TTL: &ttl})
	}
	file := filepath.Join(t.TempDir(), "zone")
	if err := Write(file, "example.com", config); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "00011804c0000201") || !strings.Contains(string(text), "00010001615c62") {
		t.Errorf("%v: %s", err, text)
	}
	text, err := exec.CommandContext(t.Context(), judge, "-i", "none", "-k", "ignore", "-o", "-", "example.com", file).CombinedOutput()
	if err != nil || strings.Count(string(text), " 60 IN ") < len(config.Records) {
		t.Errorf("%v: %s", err, text)
	}
}

// Bytes have to be all of the data of their type.
func TestBytesAreData(t *testing.T) {
	for value, good := range map[string]bool{
		`A \# 4 c0000201`: true, `A \# 0`: false, `NULL \# 0`: true, `NULL \# 2 00 FF`: true, `HTTPS \# 0`: false, `HTTPS \# 3 000100`: true, `LOC \# 3 000100`: false,
	} {
		rrtype, data, _ := strings.Cut(value, " ")
		config := bindcar.ZoneConfig{
			SOA:     &bindcar.SOA{PrimaryNS: "ns.example.net.", AdminEmail: "admin.example.net.", Serial: 1, Refresh: 1, Retry: 1, Expire: 1, NegativeTTL: 1},
			Records: []bindcar.Record{{Name: "a", Type: rrtype, Value: data}},
		}
		if err := Write(filepath.Join(t.TempDir(), "zone"), "example.com", config); (err == nil) != good {
			t.Errorf("%s: %v", value, err)
		}
	}
}

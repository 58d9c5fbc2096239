package rrset

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What BIND refuses is refused, and nothing that it takes.
func TestCheckContents(t *testing.T) {
	judge, err := exec.LookPath("named-checkzone")
	if err != nil {
		t.Fatal("this test needs named-checkzone: `apt-get install bind9-utils`")
	}
	sha256 := strings.Repeat("ab", 32)
	for rdata, want := range map[string]string{
		"DS 12345 13 2 " + sha256:                       "",
		"DS 12345 13 2 abcd":                            "the digest has 2 bytes, and one of type 2 has 32",
		"DS 12345 13 9 abcd":                            "",
		"DLV 12345 13 4 " + sha256:                      "the digest has 32 bytes, and one of type 4 has 48",
		"TA 12345 13 1 " + sha256:                       "one of type 1 has 20",
		"SSHFP 4 2 " + sha256:                           "",
		"SSHFP 4 2 " + sha256[2:]:                       "the digest has 31 bytes, and one of type 2 has 32",
		"ZONEMD 1 1 1 " + sha256:                        "one of type 1 has 48",
		"HTTPS 1 . alpn=h2":                             "",
		"HTTPS 1 . mandatory=alpn alpn=h":               "",
		"HTTPS 1 . mandatory=port alpn=h":               "mandatory lists port",
		"HTTPS 1 . mandatory=mandatory":                 "mandatory lists mandatory",
		"HTTPS 1 . no-default-alpn":                     "no-default-alpn needs alpn",
		"SVCB 1 . alpn=":                                "alpn has an empty protocol",
		"SVCB 0 x. no-default-alpn":                     "no-default-alpn needs alpn",
		"HTTPS 0 x. alpn=h2":                            "",
		"HTTPS 0 x. mandatory=port alpn=h2":             "mandatory lists port",
		"SVCB 1 x. alpn=h2 dohpath=/dns-query{?dns}":    "",
		"SVCB 1 x. alpn=h2 dohpath=/dns-query":          "dohpath is a relative template",
		"SVCB 1 x. dohpath=/q{x}dns":                    "dohpath is a relative template",
		"SVCB 1 x. dohpath=/q{?a*,dns:3}{#b}":           "",
		"SVCB 1 x. key65535=a mandatory=key65535":       "",
		"SVCB 1 x. key65535=a mandatory=key65534":       "mandatory lists key65534",
		"SVCB 1 x. key65535=a no-default-alpn":          "no-default-alpn needs alpn",
		"SVCB 1 x. key1=\\001 key65535":                 "alpn ends too early",
		"ZONEMD 1 1 240 " + sha256[:24]:                 "",
		"ZONEMD 1 1 240 " + sha256[:22]:                 "the digest has 11 bytes, and needs 12 at least",
		"RKEY 0 1 8 AQID":                               "",
		"RKEY 1 1 8 AQID":                               "the flags of an RKEY are 0",
		`WKS \# 5 c000020106`:                           "",
		`WKS \# 6 c00002010640`:                         "",
		`WKS \# 6 c00002010600`:                         "no data of this type",
		`WKS \# 4 c0000201`:                             "no data of this type",
		`A6 \# 17 0020010db8000000000000000000000001`:   "",
		`A6 \# 12 400000000000000001016100`:             "",
		`A6 \# 4 80016100`:                              "",
		`A6 \# 2 8000`:                                  "",
		`A6 \# 1 80`:                                    "no data of this type",
		`A6 \# 2 8100`:                                  "no data of this type",
		`A6 \# 9 400000000000000001`:                    "no data of this type",
		`A6 \# 18 0020010db800000000000000000000000100`: "no data of this type",
		`ATMA \# 3 013132`:                              "",
		`ATMA \# 3 013161`:                              "no data of this type",
		`ATMA \# 1 00`:                                  "no data of this type",
		`NSAP \# 1 47`:                                  "",
		`NSAP \# 0`:                                     "no data of this type",
		`SINK \# 3 010203`:                              "",
		`SINK \# 2 0102`:                                "no data of this type",
		`DSYNC \# 8 003b0114b4016100`:                   "",
		`DSYNC \# 5 003b0114b4`:                         "no data of this type",
		`DSYNC \# 9 003b0114b401610001`:                 "no data of this type",
		`HHIT \# 0`:                                     "no data of this type",
		`BRID \# 1 00`:                                  "",
		`DOA \# 10 00000000000000000000`:                "",
		`DOA \# 9 000000000000000000`:                   "no data of this type",
		`DOA \# 11 0000000000000000000261`:              "no data of this type",
		`WALLET \# 3 016100`:                            "",
		`WALLET \# 2 0261`:                              "no data of this type",
		`WALLET \# 0`:                                   "no data of this type",
		"A 192.0.2.1":                                   "",
	} {
		mnemonic, text, _ := strings.Cut(rdata, " ")
		rrtype, known := ParseType(mnemonic)
		if !known {
			t.Fatal(mnemonic)
		}
		canonical, err := Parse(Key{Name: ".", Type: rrtype}, text)
		if err == nil {
			err = CheckContents(rrtype, canonical)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rdata, err, want)
		}
		zone := filepath.Join(t.TempDir(), "zone")
		text = "$TTL 1\n@ SOA a. b. 1 2 3 4 5\n@ NS a.\nx " + mnemonic + " " + text + "\n"
		if err := os.WriteFile(zone, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if output, err := exec.CommandContext(t.Context(), judge, "-i", "none", "example.com", zone).CombinedOutput(); (err == nil) != (want == "") {
			t.Errorf("%s: BIND says %v: %s", rdata, err, output)
		}
	}
}

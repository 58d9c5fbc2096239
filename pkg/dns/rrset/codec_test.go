package rrset

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
)

func TestParse(t *testing.T) {
	long := strings.Repeat("x", 255)
	for name, test := range map[string]struct {
		rrtype   uint16
		in, want string
	}{
		"A":                          {dns.TypeA, "192.0.2.1", "192.0.2.1"},
		"AAAA":                       {dns.TypeAAAA, "2001:DB8:0:0::0001", "2001:db8::1"},
		"AAAA with IPv4 in it":       {dns.TypeAAAA, "::FFFF:192.0.2.1", "::ffff:192.0.2.1"},
		"AAAA zero":                  {dns.TypeAAAA, "0:0:0:0:0:0:0:0", "::"},
		"CNAME":                      {dns.TypeCNAME, "WWW.Example.com", "www.example.com."},
		"NS":                         {dns.TypeNS, "NS1.example.com.", "ns1.example.com."},
		"PTR":                        {dns.TypePTR, "Host.Example.", "host.example."},
		"DNAME":                      {dns.TypeDNAME, "Other.example.", "other.example."},
		"MX":                         {dns.TypeMX, " 010  Mail.example. ", "10 mail.example."},
		"null MX":                    {dns.TypeMX, "0 .", "0 ."},
		"SRV":                        {dns.TypeSRV, "1 2 65535 Host.example.", "1 2 65535 host.example."},
		"TXT":                        {dns.TypeTXT, `"v=spf1 -all"`, `"v=spf1 -all"`},
		"TXT without quotes":         {dns.TypeTXT, `one two`, `"one" "two"`},
		"TXT empty":                  {dns.TypeTXT, `""`, `""`},
		"TXT escapes":                {dns.TypeTXT, `"a\"b\\c\;d\065"`, `"a\"b\\c;dA"`},
		"TXT UTF-8 and control":      {dns.TypeTXT, "\"\u00fc\x01\t\"", `"\195\188\001\009"`},
		"TXT two strings":            {dns.TypeTXT, `"` + long + `" "y"`, `"` + long + `" "y"`},
		"TXT blank after backslash":  {dns.TypeTXT, `a\ b`, `"a b"`},
		"CAA":                        {dns.TypeCAA, `0 ISSUE "LetsEncrypt.org"`, `0 issue "LetsEncrypt.org"`},
		"CAA critical, none":         {dns.TypeCAA, `128 issue ";"`, `128 issue ";"`},
		"CAA without quotes":         {dns.TypeCAA, `0 iodef mailto:a@example.com`, `0 iodef "mailto:a@example.com"`},
		"CAA backslash":              {dns.TypeCAA, `0 issue "a\\b\"c"`, `0 issue "a\\b\"c"`},
		"CAA long value":             {dns.TypeCAA, `0 issue "` + long + `yz"`, `0 issue "` + long + `yz"`},
		"CAA very long value":        {dns.TypeCAA, `0 issue "` + strings.Repeat(long, 5) + `"`, `0 issue "` + strings.Repeat(long, 5) + `"`},
		"SOA":                        {dns.TypeSOA, "NS1.example. admin.Example. 1 2 3 4 5", "ns1.example. admin.example. 1 2 3 4 5"},
		"SSHFP by the parser":        {dns.TypeSSHFP, "1 1 ABCDEF0123456789ABCDEF0123456789ABCDEF01", "1 1 ABCDEF0123456789ABCDEF0123456789ABCDEF01"},
		"TLSA with blanks":           {dns.TypeTLSA, "3 1 1 ab cd", "3 1 1 abcd"},
		"NAPTR":                      {dns.TypeNAPTR, `010 100 "S" "SIP+D2U" "" _Sip._udp.Example.`, `10 100 "S" "SIP+D2U" "" _sip._udp.example.`},
		"NAPTR with an expression":   {dns.TypeNAPTR, `10 100 "u" "E2U+sip" "!^\\+(.*)$!sip:\\1@Example!" .`, `10 100 "u" "E2U+sip" "!^\\+(.*)$!sip:\\1@Example!" .`},
		"SVCB by the parser":         {dns.TypeHTTPS, `1 . alpn="h2,h3"`, `1 . alpn="h2,h3"`},
		"unknown type":               {65400, `\# 3 ABCDEF`, `\# 3 abcdef`},
		"known type in unknown form": {dns.TypeSSHFP, `\# 3 0101ab`, "1 1 AB"},
	} {
		t.Run(name, func(t *testing.T) {
			key := Key{"x.example.", test.rrtype}
			got, err := Parse(key, test.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			roundTrip(t, key, got)
		})
	}
}

// roundTrip checks that canonical rdata survives ToRR, a DNS message and FromRR.
func roundTrip(t *testing.T, key Key, rdata string) {
	t.Helper()
	rr, err := ToRR(key, 300, rdata)
	if err != nil {
		t.Fatalf("%q does not become an RR: %v", rdata, err)
	}
	if _, _, got := FromRR(rr); got != rdata {
		t.Fatalf("%q became %q in memory", rdata, got)
	}
	m := new(dns.Msg)
	m.Answer = []dns.RR{rr}
	wire, err := m.Pack()
	if err != nil {
		t.Fatalf("%q does not pack: %v", rdata, err)
	}
	var back dns.Msg
	if err := back.Unpack(wire); err != nil {
		t.Fatalf("%q does not unpack: %v", rdata, err)
	}
	gotKey, ttl, got := FromRR(back.Answer[0])
	if gotKey != key || ttl != 300 || got != rdata {
		t.Fatalf("%s %q came back as %s %q with TTL %d", key, rdata, gotKey, got, ttl)
	}
	if again, err := Parse(key, got); err != nil || again != got {
		t.Fatalf("%q parses as %q, %v", got, again, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		rrtype      uint16
		in, message string
	}{
		"A empty":              {dns.TypeA, "", "not an IPv4 address"},
		"A of IPv6":            {dns.TypeA, "2001:db8::1", "IPv4 is needed here"},
		"A with leading zeros": {dns.TypeA, "192.0.2.010", "not an IPv4 address"},
		"A short":              {dns.TypeA, "192.0.2", "not an IPv4 address"},
		"AAAA of IPv4":         {dns.TypeAAAA, "192.0.2.1", "IPv6 is needed here"},
		"AAAA with zone":       {dns.TypeAAAA, "fe80::1%eth0", "not an IPv6 address"},
		"CNAME IDN":            {dns.TypeCNAME, "bücher.example.", "xn--bcher-kva.example."},
		"CNAME of two":         {dns.TypeCNAME, "a. b.", `the character ' '`},
		"MX without name":      {dns.TypeMX, "10", "preference name"},
		"MX out of range":      {dns.TypeMX, "65536 a.", "preference"},
		"SRV negative":         {dns.TypeSRV, "0 0 -1 a.", "port"},
		"TXT nothing":          {dns.TypeTXT, "  ", "no string"},
		"TXT open":             {dns.TypeTXT, `"a`, "no closing quote"},
		"TXT quote inside":     {dns.TypeTXT, `a"b`, "quote inside"},
		"TXT no blank":         {dns.TypeTXT, `"a""b"`, "without a blank"},
		"TXT long string":      {dns.TypeTXT, `"` + strings.Repeat("x", 256) + `"`, "256 bytes"},
		"TXT stray escape":     {dns.TypeTXT, `"a\25"`, "without three digits"},
		"CAA flags":            {dns.TypeCAA, `256 issue "a"`, "0 to 255"},
		"CAA tag":              {dns.TypeCAA, `0 is-sue "a"`, "letters and digits"},
		"CAA two values":       {dns.TypeCAA, `0 issue a b`, "expected one value, got 2"},
		"CAA form":             {dns.TypeCAA, `0 issue`, "flags tag"},
		"SOA short":            {dns.TypeSOA, `a. b. 1`, "7"},
		"generic newline":      {dns.TypeSSHFP, "1 1 ab\nx. 0 IN A 192.0.2.1", "one line"},
		"generic nonsense":     {dns.TypeSSHFP, "x", "SSHFP"},
		"unknown type":         {65400, "x", "TYPE65400"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(Key{"x.example.", test.rrtype}, test.in)
			if err == nil {
				t.Fatalf("accepted as %q", got)
			}
			if got != "" {
				t.Errorf("%q came with the error", got)
			}
			if !strings.Contains(err.Error(), test.message) {
				t.Errorf("message %q does not say %q", err, test.message)
			}
			if _, err := ToRR(Key{"x.example.", test.rrtype}, 0, test.in); err == nil {
				t.Error("ToRR accepted it")
			}
		})
	}
}

func TestFromRR(t *testing.T) {
	h := func(rrtype uint16, ttl uint32) dns.RR_Header {
		return dns.RR_Header{Name: "WWW.Example.com.", Rrtype: rrtype, Class: dns.ClassINET, Ttl: ttl}
	}
	for name, test := range map[string]struct {
		rr    dns.RR
		ttl   uint32
		rdata string
	}{
		"TTL capped":          {&dns.NS{Hdr: h(dns.TypeNS, 1<<31), Ns: "NS.Example."}, 1<<31 - 1, "ns.example."},
		"MX by case":          {&dns.MX{Hdr: h(dns.TypeMX, 1), Preference: 5, Mx: "MAIL.example."}, 1, "5 mail.example."},
		"CAA raw from net":    {&dns.CAA{Hdr: h(dns.TypeCAA, 1), Tag: "ISSUE", Value: `a\b"c`}, 1, `0 issue "a\\b\"c"`},
		"TXT splits differ":   {&dns.TXT{Hdr: h(dns.TypeTXT, 1), Txt: []string{"ab", "c"}}, 1, `"ab" "c"`},
		"TXT without strings": {&dns.TXT{Hdr: h(dns.TypeTXT, 1)}, 1, `""`},
		"TXT needless escape": {&dns.TXT{Hdr: h(dns.TypeTXT, 1), Txt: []string{`\a\066`}}, 1, `"aB"`},
		"raw rdata":           {&dns.RFC3597{Hdr: h(dns.TypeA, 1), Rdata: "c0000201"}, 1, "192.0.2.1"},
		"broken raw rdata":    {&dns.RFC3597{Hdr: h(dns.TypeA, 1), Rdata: "c00002"}, 1, `\# 3 c00002`},
		"delete an RRset":     {&dns.ANY{Hdr: h(dns.TypeA, 0)}, 0, ""},
		"name that is odd":    {&dns.CNAME{Hdr: h(dns.TypeCNAME, 1), Target: "Odd Name."}, 1, "odd name."},
	} {
		t.Run(name, func(t *testing.T) {
			key, ttl, rdata := FromRR(test.rr)
			if want := (Key{"www.example.com.", test.rr.Header().Rrtype}); key != want || ttl != test.ttl || rdata != test.rdata {
				t.Errorf("got %s %d %q, want %d %q", key, ttl, rdata, test.ttl, test.rdata)
			}
		})
	}
}

func TestText(t *testing.T) {
	x := strings.Repeat("x", 255)
	for name, test := range map[string]struct {
		in   []string
		want string
	}{
		"one":            {[]string{"v=spf1 -all"}, `"v=spf1 -all"`},
		"empty":          {[]string{""}, `""`},
		"empty and not":  {[]string{"", "a", ""}, `"" "a" ""`},
		"not escaped":    {[]string{`a\b"c\065`}, `"a\\b\"c\\065"`},
		"255":            {[]string{x}, `"` + x + `"`},
		"256":            {[]string{x + "y"}, `"` + x + `" "y"`},
		"510":            {[]string{x + x}, `"` + x + `" "` + x + `"`},
		"long and short": {[]string{x + "y", "z"}, `"` + x + `" "y" "z"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := TXT(test.in...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			roundTrip(t, Key{"x.", dns.TypeTXT}, got)
		})
	}
	for name, in := range map[string][]string{"none": nil, "too much": {strings.Repeat("x", 65300)}} {
		if got, err := TXT(in...); err == nil {
			t.Errorf("%s: accepted as %q", name, Shorten(got))
		}
	}
}

func TestNew(t *testing.T) {
	given := []string{"b", "a", "b"}
	got := New(Key{"x.", dns.TypeTXT}, 5, given...)
	if diff := cmp.Diff(RRset{Key: Key{"x.", dns.TypeTXT}, TTL: 5, Rdata: []string{"a", "b"}}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"b", "a", "b"}, given); diff != "" {
		t.Errorf("the argument changed: %s", diff)
	}
}

func FuzzRdata(f *testing.F) {
	for t, s := range map[uint16]string{
		dns.TypeA: "192.0.2.1", dns.TypeAAAA: "2001:db8::1", dns.TypeCNAME: `a\.b.example.`, dns.TypeMX: "10 mail.",
		dns.TypeSRV: "1 2 3 host.", dns.TypeTXT: `"a\"\\\009" b`, dns.TypeCAA: `0 issue "a\\b"`, dns.TypeSOA: "a. b. 1 2 3 4 5",
		dns.TypeNS: ".", dns.TypePTR: "p.",
	} {
		f.Add(t, s)
	}
	f.Fuzz(func(t *testing.T, rrtype uint16, in string) {
		key := Key{"x.example.", rrtype}
		if _, ok := codecs[rrtype]; !ok {
			t.Skip() // The generic parser is miekg/dns'.
		}
		rdata, err := Parse(key, in)
		if err != nil {
			if _, err := ToRR(key, 0, in); err == nil {
				t.Fatalf("ToRR accepts %q, Parse does not", in)
			}
			return
		}
		roundTrip(t, key, rdata)
	})
}

func FuzzText(f *testing.F) {
	f.Add("a", `b"\`)
	f.Add(strings.Repeat("\x00", 300), "")
	f.Fuzz(func(t *testing.T, a, b string) {
		rdata, err := TXT(a, b)
		if err != nil {
			t.Skip()
		}
		roundTrip(t, Key{"x.example.", dns.TypeTXT}, rdata)
		strs, err := ParseStrings(rdata)
		if err != nil || strings.Join(strs, "") != a+b {
			t.Fatalf("the text became %q, %v", strs, err)
		}
	})
}

func BenchmarkFromRR(b *testing.B) {
	for _, s := range []string{"A 192.0.2.1", "AAAA 2001:db8::1", "TXT \"v=spf1 -all\"", "MX 10 mail.example.com.", "CNAME www.example.com."} {
		rr, err := dns.NewRR("host.example.com. 300 IN " + s)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(strings.Fields(s)[0], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				FromRR(rr)
			}
		})
	}
}

// What miekg/dns cannot read of a message is read as bytes, if BIND takes it; nothing else is.
func TestUnpackRR(t *testing.T) {
	for rdata, want := range map[string]string{
		`HTTPS \# 23 0001000006001000000000000000000000ffffc0000201`: "",
		`SVCB \# 7 000100ffff0000`:                                   "",
		`APL \# 5 0003180101`:                                        "",
		`APL 1:192.0.2.1/24`:                                         "",
		`HTTPS 1 . alpn=h2`:                                          "",
		`TXT "x"`:                                                    "",
		`ISDN "1"`:                                                   "",
		`ISDN "1" ""`:                                                "",
		`AMTRELAY 10 1 1 192.0.2.1`:                                  "",
		`AMTRELAY 10 1 3 relay.`:                                     "",
		`UID \# 3 313030`:                                            "",
		`GID \# 4 00000064`:                                          "",
		`CSYNC 1 0 TYPE11 TYPE65535`:                                 "",
		`HTTPS \# 8 0001000003000101`:                                "bad svcbport",
		`APL \# 4 00012100`:                                          "APL prefix too long",
		`A \# 3 c00002`:                                              "overflow unpacking a",
	} {
		mnemonic, text, _ := strings.Cut(rdata, " ")
		h := dns.RR_Header{Name: "a.example.", Rrtype: dns.StringToType[mnemonic], Class: dns.ClassINET, Ttl: 7}
		var rr dns.RR = &dns.RFC3597{Hdr: h}
		if digits, ok := strings.CutPrefix(text, `\# `); ok {
			rr = &dns.RFC3597{Hdr: h, Rdata: strings.Fields(digits)[1]}
		} else if made, err := ToRR(Key{h.Name, h.Rrtype}, h.Ttl, text); err == nil {
			rr = made
		}
		message := make([]byte, 3+100)
		n, err := dns.PackRR(rr, message, 3, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		got, next, err := UnpackRR(message[:n], 3)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, %v, want %q", rdata, got, err, want)
			}
			continue
		}
		if err != nil || next != n || got.Header().Ttl != 7 {
			t.Errorf("%s: %v, %v, next %d of %d", rdata, got, err, next, n)
			continue
		}
		key, _, canonical := FromRR(got)
		if want, err := Parse(key, text); err != nil || canonical != want {
			t.Errorf("%s: %q, want %q, %v", rdata, canonical, want, err)
		}
	}
}

// Different spellings of the same data have one canonical form, and that form is read again.
func TestSpellings(t *testing.T) {
	for name, tc := range map[string]struct {
		rrtype uint16
		all    []string
	}{
		"a parameter by number":   {dns.TypeHTTPS, []string{`1 . dohpath="/q{?dns}" alpn=h2`, `1 . key7=/q{?dns} alpn="h2"`, `1 . alpn="h2" key7="/q{?dns}"`, `1 . key1=\002h2 key7=/q{\?dns}`}},
		"a port by number":        {dns.TypeSVCB, []string{`1 . port=258`, `1 . key3=\001\002`, `1 . key3="\001\002"`}},
		"a flag by number":        {dns.TypeHTTPS, []string{`1 . alpn=h2 no-default-alpn`, `1 . key2 alpn=h2`, `1 . key2= alpn=h2`}},
		"a private key":           {dns.TypeHTTPS, []string{`1 . key65280="a key3=b" port=1`, `1 . key65280=a\032key3=b key3=\000\001`}},
		"minutes without seconds": {dns.TypeLOC, []string{"52 22 0 N 4 53 0 E 2m", "52 22 N 4 53 E 2.00", "52  22 N 4 53 0.000 E 2m 1m 10000m 10m"}},
		"a hint of IPv4":          {dns.TypeHTTPS, []string{`1 . ipv6hint=::ffff:192.0.2.1`, `1 . ipv6hint="::FFFF:c000:201"`, `\# 23 0001000006001000000000000000000000ffffc0000201`}},
		"the reserved key":        {dns.TypeSVCB, []string{`1 . alpn=h2 key65535=x`, `1 . key65535="\120" alpn="h2"`, `\# 15 00010000010003026832ffff000178`}},
		"bits of a host":          {dns.TypeAPL, []string{`1:192.0.2.1/24`, `\# 8 00011804c0000201`}},
		"an unknown family":       {dns.TypeAPL, []string{`\# 5 0003180101`}},
		"an unknown version":      {dns.TypeLOC, []string{`\# 16 01121613800000008000000000989680`}},
		"a backslash in a target": {dns.TypeURI, []string{`1 2 "a\\b\"c"`, `1 2 "\097\092b\034c"`, `\# 9 00010002615c622263`}},
		"an access point":         {typeNSAP, []string{`0x47.0005.80`, `0X47000580`, `\# 4 47000580`}},
		"a wallet":                {typeWALLET, []string{`BTC x`, `"BTC" "x"`, `\# 6 034254430178`}},
		"an identifier":           {dns.TypeNID, []string{`10 0014:4fff:0000:ee64`, `10 14:4FFF:0:ee64`}},
		"types of a bit map":      {dns.TypeCSYNC, []string{`1 0 A TYPE65535`, `1 0 type65535 A A`, `\# 43 000000010000000140ff200000000000000000000000000000000000000000000000000000000000000001`}},
		"a flag of a relay":       {dns.TypeAMTRELAY, []string{`10 1 1 192.0.2.1`, `010 01 1 192.0.2.1`, `\# 6 0a81c0000201`}},
		"no relay":                {dns.TypeAMTRELAY, []string{`10 0 0 .`, `\# 2 0a00`}},
		"one number":              {dns.TypeISDN, []string{`"1"`, `1`, `\# 2 0131`}},
		"a number of a user":      {dns.TypeUID, []string{`\# 4 00000064`, `\# 4 0000 0064`}},
		"degrees alone":           {dns.TypeLOC, []string{"52 0 0 N 4 0 0 E 0m", "52 N 4 E 0m", "52 0 N 4 E 0m"}},
		"bytes of a location":     {dns.TypeLOC, []string{"0 0 0 N 0 0 0 E 0m", `\# 16 00121613 80000000 80000000 00989680`}},
		"a digest by name":        {dns.TypeDS, []string{"1 8 1 00112233445566778899AABBCCDDEEFF00112233", "1 RSASHA256 SHA-1 00112233445566778899aabbccddeeff 00112233", "1 rsasha256 sha1 00112233445566778899AABBCCDDEEFF00112233"}},
		"an old algorithm":        {dns.TypeDS, []string{"1 7 2 00", "1 NSEC3RSASHA1 SHA256 00", "1 RSASHA1-NSEC3-SHA1 2 00"}},
		"flags of a key":          {dns.TypeKEY, []string{"16899 3 8 AQID", "0x4203 3 8 AQID", "0X4203 DNSSEC RSASHA256 AQ ID", "NOCONF|host|SIG3 3 8 AQID", "SIG3|HOST|NOCONF| 3 8 AQID"}},
		"a certificate":           {dns.TypeCERT, []string{"IPKIX 1 ECCGOST AQID", "4 1 12 AQ ID", "ipkix 1 ECC-GOST AQID"}},
		"bytes":                   {dns.TypeNULL, []string{`\# 2 00ff`, `\# 2 00 FF`}},
		"no bytes":                {dns.TypeNULL, []string{`\# 0`}},
	} {
		t.Run(name, func(t *testing.T) {
			key := Key{Name: "a.", Type: tc.rrtype}
			want, err := Parse(key, tc.all[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, spelling := range append(tc.all, want) {
				got, err := Parse(key, spelling)
				if err != nil || got != want {
					t.Errorf("%s: %q, %v; want %q", spelling, got, err, want)
				}
				if rr, err := ToRR(key, 1, spelling); err != nil {
					t.Errorf("%s: %v", spelling, err)
				} else if _, _, text := FromRR(rr); text != want {
					t.Errorf("%s: %q, want %q", spelling, text, want)
				}
			}
		})
	}
	for rrtype, wrong := range map[uint16][]string{
		dns.TypeHTTPS:    {`1 . key3=\001`, `1 . key3="\000\001"x`, `1 . port=1 key3=\000\001`, `1 . key3=\256`},
		dns.TypeKEY:      {"ZONE|NONE 3 8 AQID", "0x1ffff 3 8 AQID", "| 3 8 AQID"},
		dns.TypeAMTRELAY: {"10 2 1 192.0.2.1", "10 1 4 x", "10 0 0 x"},
	} {
		for _, rdata := range wrong {
			if got, err := Parse(Key{Type: rrtype}, rdata); err == nil {
				t.Errorf("%s is read as %q", rdata, got)
			}
		}
	}
}

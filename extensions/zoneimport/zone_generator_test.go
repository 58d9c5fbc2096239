package zoneimport

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// zoneGenerator writes zone files of example.com with everything that readers of zone files get wrong. The same seed always gives
// the same files.
type zoneGenerator struct {
	*rand.Rand
	// files are what is included, and the zone file "zone" itself.
	files map[string]string
	// wrong is how many of a thousand choices may break the file. If any may, there is nothing in it that would be listed.
	wrong int
	// old is true for a file without $TTL, where a record has the last TTL.
	old bool
}

func generateZone(seed uint64) map[string]string {
	g := &zoneGenerator{Rand: rand.New(rand.NewPCG(seed, 1)), files: map[string]string{}}
	if g.in(3) {
		g.wrong = 30
	}
	var b strings.Builder
	if g.in(5) {
		b.WriteString(g.pick("; (\n", "\n", "$ORIGIN example.com.\n", " \t\n", "$origin @ ; \"\n", "$DATE 20260101000000\n"))
	}
	if g.old = g.in(3); !g.old && !g.in(3) {
		b.WriteString("$TTL " + g.ttl() + "\n")
	}
	ttl := ""
	if g.old || g.in(2) {
		ttl = g.ttl()
	}
	b.WriteString(g.entry(g.pick("@", "example.com.", "EXAMPLE.com.", "\"@\""), ttl, "SOA", "ns.example.net. hostmaster 7 2h 600 1w "+g.ttl()))
	b.WriteString(g.entry("", "", "NS", "ns.example.net."))
	for range 2 + g.IntN(14) {
		b.WriteString(g.line(0))
	}
	if g.in(15) { // The included file goes on in the last line of this one.
		b.WriteString("$INCLUDE last")
		g.files["last"] = g.pick("\tA 192.0.2.1\n", " TXT MX 1 a\n", "\n TXT x\n", "a A 192.0.2.1\n")
	}
	g.files["zone"] = g.finish(b.String())
	return g.files
}

// finish decides how the lines of a file end.
func (g *zoneGenerator) finish(text string) string {
	if g.in(15) {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if g.in(15) {
		text = strings.TrimSuffix(text, "\n")
	}
	return text
}

func (g *zoneGenerator) in(n int) bool { return g.IntN(n) == 0 }

// breaks reports whether to write something that BIND refuses.
func (g *zoneGenerator) breaks() bool { return g.IntN(1000) < g.wrong }

func (g *zoneGenerator) pick(all ...string) string { return all[g.IntN(len(all))] }

func (g *zoneGenerator) line(depth int) string {
	switch n := g.IntN(100); {
	case n < 4:
		return g.pick("$ORIGIN ", "$origin\t") + g.pick("sub", "example.com.", "a.example.com.", "@", "b.c", "Sub.example.com.") + g.end()
	case n < 9 && !g.old:
		return g.pick("$TTL ", "$ttl  ", "\"$TTL\" ") + g.ttl() + g.end()
	case n < 15 && depth < 3:
		return g.include(depth)
	case n < 27:
		return g.generate()
	case n < 33:
		return g.pick("\n", "; \"(\n", "   \n", " ; x\n", "\t( )\n", "(\n)\n", " (\n) ; y\n")
	case n < 39:
		return g.delegation(depth)
	case n == 39 && g.in(2):
		return "$DATE " + g.pick("20260101000000", "19700101000000", "20260228235959") + g.end()
	case n == 40 && g.wrong == 0:
		return "out.example.net. SOA a b 1 1 1 1 77\n"
	}
	if g.breaks() {
		return g.pick("a A\n", "a TXT (\"x\"\n", "a TXT \"x\n", "a )A 192.0.2.1\n", "$NONSENSE x\n", "$TTL\n", "$TTL 1x\n", "a 1h30 A 192.0.2.1\n", "a NONSENSE x\n",
			"a A 192.0.2.1 192.0.2.2\n", "a..b A 192.0.2.1\n", strings.Repeat("a", 64)+" A 192.0.2.1\n", strings.Repeat("abc.", 63)+" A 192.0.2.1\n",
			"a OPT \\# 0\n", "a IN IN A 192.0.2.1\n", "a 60 60 A 192.0.2.1\n", "a \"A\" 192.0.2.1\n", "a CH TXT x\n", "$INCLUDE gone\n", "$ORIGIN a b\n", "a\x00b A 192.0.2.1\n",
			"\\[x A 192.0.2.1\n", "\\256 A 192.0.2.1\n", "\\1 A 192.0.2.1\n", "example.com. SOA a b 9 1 1 1 1\n", "sub SOA a b 1 1 1 1 1\n", "a [AGE:1] A 192.0.2.1\n", "a ANY TXT x\n")
	}
	owner := ""
	if !g.in(4) {
		owner = g.owner()
	}
	ttl := ""
	if g.in(3) {
		ttl = g.ttl()
	}
	rrtype, data := g.record()
	for g.wrong > 0 && !strings.Contains("A AAAA TXT MX SRV CAA PTR TYPE1 TYPE15 TYPE16", strings.ToUpper(rrtype)) {
		rrtype, data = g.record()
	}
	if rrtype == "CNAME" || rrtype == "DNAME" {
		owner = fmt.Sprintf("cname%d", g.IntN(1_000_000))
		return g.entry(owner, ttl, rrtype, data) + g.entry(g.owner(), "", "A", g.address())
	}
	return g.entry(owner, ttl, rrtype, data)
}

// delegation mixes records of an owner and of its name servers, with TTLs at odds.
func (g *zoneGenerator) delegation(depth int) string {
	if g.wrong > 0 { // It would be listed.
		return "\n"
	}
	text := g.entry("sub", g.ttl(), "NS", "ns.sub.example.com.")
	for range 1 + g.IntN(5) {
		ttl := ""
		if g.in(2) {
			ttl = g.ttl()
		}
		switch g.IntN(6) {
		case 0:
			text += g.entry("sub", ttl, "NS", g.pick("ns.example.net.", "ns.sub"))
		case 1:
			text += g.entry("", ttl, "TXT", g.pick("x", "y"))
		case 2:
			text += g.entry("NS.sub", ttl, "A", g.address())
		case 3:
			if depth < 3 {
				text += g.include(depth)
			}
		default:
			text += g.entry("ns.sub", ttl, "A", g.address())
		}
	}
	return text
}

func (g *zoneGenerator) end() string {
	return g.pick("\n", "\n", "\n", " \n", "\t; x\n", ";\"\n", " ( )\n", " (\n)\n")
}

func (g *zoneGenerator) ttl() string {
	if g.breaks() {
		return g.pick("1x", "4294967296", "1h5", "5m5", "h", "-1", "1.5", "0x10")
	}
	return g.pick("60", "300", "1h30m", "2H", "0", "1w", "00070", "2147483647", "2147483648", "4294967295", "0s5", "1m1m", "600", "7200")
}

func (g *zoneGenerator) owner() string {
	if g.in(20) && g.wrong == 0 {
		return "out.example.net."
	}
	return g.pick("@", "a", "b", "www", "WWW", "Www", "*", "sub", "x.sub", "example.com.", "www.example.com.", "WWW.EXAMPLE.COM.", "\"a\"", "\"q\\\"q; \"", "a\\.b", "\\097", "q\\;q",
		"\\@", "a\\ b", "_sip._tcp", "example.com", "\\$x", "x$y", "ns.sub", "\xc3\xbc", "a/b", "a(\n)", "y..."[:1])
}

func (g *zoneGenerator) host() string {
	if g.breaks() {
		return g.pick("a..b", ".a", "\"a\"", "a\\", "a\\25x", strings.Repeat("b", 64))
	}
	return g.pick("www", "@", "www.example.net.", "Mail", ".", "a\\.b", "\\119ww", "*", "x.sub", "ns.sub", "a\\(b", "example.com.", "sub")
}

func (g *zoneGenerator) address() string {
	if g.breaks() {
		return g.pick("192.0.2", "192.0.2.256", "192.0.2.01", "\"192.0.2.1\"", "0xc0000201", "192.0.2.1.", "::1")
	}
	return fmt.Sprintf("192.0.2.%d", g.IntN(4))
}

func (g *zoneGenerator) number() string {
	if g.breaks() {
		return g.pick("65536", "-1", "+1", "0x1", "4294967297", "\"1\"", "1.0", "1h")
	}
	return g.pick("0", "10", "00020", "65535", "1")
}

// text is a character-string.
func (g *zoneGenerator) text() string {
	if g.breaks() {
		return g.pick("\\256", "\\1", "\\12x", "\"x\ny\"", strings.Repeat("x", 256), "\""+strings.Repeat("\\120", 256)+"\"", "x\\", "\"x")
	}
	var b strings.Builder
	quoted := g.in(2)
	for range g.IntN(5) {
		b.WriteString(g.pick("a", "B", "\\\"", "\\;", "\\\\", "\\000", "\\255", "\\065", "\\a", "\\#", "\xff", "é", "'", "=", "$", "@", "\\ ", "\\(", "{", "//", "~"))
		if quoted {
			b.WriteString(g.pick("", "", " ", ";", "(", ")", "\t", "x y"))
			if g.in(40) {
				b.WriteString("\\\n")
			}
		}
	}
	switch {
	case g.in(40):
		return "\"" + strings.Repeat("z", 255) + "\""
	case quoted:
		return "\"" + b.String() + "\""
	case b.Len() == 0:
		return "t"
	}
	return b.String()
}

func (g *zoneGenerator) texts() string {
	all := []string{g.text()}
	for g.in(2) {
		all = append(all, g.text())
	}
	return strings.Join(all, g.pick(" ", "  ", "\t"))
}

// record returns a type and its data.
func (g *zoneGenerator) record() (rrtype, data string) {
	switch g.IntN(26) {
	case 0, 1, 2, 3:
		return g.pick("A", "a", "A", "TYPE1"), g.address()
	case 4:
		return "AAAA", g.pick("2001:db8::1", "2001:DB8:0:0::2", "::ffff:192.0.2.1", "::", "1:2:3:4:5:6:7::", "::192.0.2.1")
	case 5, 6, 7:
		return g.pick("TXT", "txt", "TXT", "TYPE16"), g.texts()
	case 8:
		return g.pick("MX", "TYPE15"), g.number() + " " + g.host()
	case 9:
		return "SRV", g.number() + " " + g.number() + " " + g.number() + " " + g.host()
	case 10:
		return "CAA", g.pick("0", "128", "255") + " " + g.pick("issue", "ISSUE", "iodef", "x9", g.longTag()) + " " + g.text()
	case 11:
		return "PTR", g.host()
	case 12:
		return "CNAME", g.host()
	case 13:
		return "NS", g.pick("ns.sub", "ns.example.net.", "x.sub", "ns.sub.example.com.", "a")
	case 14:
		return "NAPTR", g.number() + " " + g.number() + " " + g.pick("s", "\"U\"", "\"\"") + " " + g.pick("SIP+D2U", "\"E2U+sip\"", "\"\"") + " " + g.substitution() + " " + g.host()
	case 15, 16:
		return g.generic()
	case 17:
		return "HINFO", g.text() + " " + g.text()
	case 18:
		return "RRSIG", g.pick("A", "TXT", "MX") + " 8 3 300 20300101000000 20200101000000 1 example.com. AAAA"
	}
	return g.other()
}

// longTag is one that BIND reads and package rrset does not.
func (g *zoneGenerator) longTag() string {
	if g.wrong > 0 {
		return "issuewild"
	}
	return "averyveryverylongtag"
}

func (g *zoneGenerator) substitution() string {
	if g.breaks() {
		return g.pick("\"!^(.)*?!\\\\2!\"", "\"!*a!b!\"", "\"!a!b\"", "\"!a!\\\\1!\"", "\"0a0b0\"", "\"!a!b!x\"", "\"!(a|)!b!\"", "\"!^*!b!\"", "\"![[:foo:]]!b!\"", "\"!a{256}!b!\"")
	}
	return g.pick("\"\"", "\"!^.*$!sip:info@example.com!\"", "\"!^\\\\+431(.*)$!sip:\\\\1@x!i\"", "\"!a(b|c)[0-9]{2}!x!\"", "!x!y!", "\"/a*|b/x/\"", "\"!^[[:digit:]_-]+\\\\d$!x!\"", "\"![[.a.][=b=]]{1,}!x!\"")
}

// generic is the form of RFC 3597.
func (g *zoneGenerator) generic() (rrtype, data string) {
	if g.breaks() {
		return g.pick("A", "TXT", "MX", "NS", "CAA", "SRV"), "\\# " + g.pick("3 C00002", "4 C000020", "4 C0000201 00", "5 C000020100", "0", "x", "4", "4 000AC000", "\"4\" C0000201", "4 C000020G", "70000 00")
	}
	switch g.IntN(9) {
	case 0:
		return "A", "\\# 4 " + g.pick("C0000201", "c000 0202", "C 0 0 0 0 2 0 3")
	case 1:
		return "TXT", "\\# " + g.pick("3 026162", "3 02 6a 6B", "1 00", "4 01610162", "3 025C22")
	case 2:
		return "TXT", g.pick("\\#", "\\# x", "\"\\#\" 3 026162", "\\# \"3\" 026162", "\\#3")
	case 3:
		return "NS", "\\# 8 016103636f6d00"[:2+1+1+1] + "016103636f4D00"
	case 4:
		return "MX", "\\# 5 000a 01 41 00"
	case 5:
		return "CAA", "\\# 9 00 05 6973737565 5C22"
	case 6:
		return "TYPE65280", "\\# " + g.pick("0", "2 abcd", "3 ab cd ef")
	case 7:
		return "SRV", "\\# 9 0001 0002 0003 01 61 00"
	}
	return "AAAA", "\\# 16 20010db8000000000000000000000001"
}

// other is a type without a kind of its own.
func (g *zoneGenerator) other() (rrtype, data string) {
	digest := strings.Repeat(g.pick("0123456789abcdef", "FFEEDDCCBBAA9988"), 4)
	fold := func(text string) string { return text[:30] + g.pick("", " ", "\t") + text[30:] }
	all := [][2]string{
		{"RP", g.pick("a b", ". .", "a\\.b.example.net. @", "A b.sub")},
		{"WKS", g.pick("192.0.2.1 6 25 53", "192.0.2.1 TCP smtp DOMAIN 65535", "192.0.2.1 17 0", "192.0.2.1 udp")},
		{g.pick("SSHFP", "TYPE44", "sshfp"), g.pick("1 1 ", "4 1 ") + digest[:40]},
		{"SSHFP", g.pick("4 2 ", "1 2 ") + fold(digest)},
		{"GPOS", g.pick("-32.6882 116.8652 10.0", "\"-32.6882\" \"116.8652\" 10")},
		{"WALLET", g.texts()},
		{"SINK", g.pick("1 2 3 YWJj", "255 0 0", "0 1 2 YW Jj")},
		{"DOA", g.pick("0 1 2 text/plain YWJj", "4294967295 0 255 \"a b\" -", "1 2 3 \"\" YW Jj")},
		{"DSYNC", g.pick("CDS", "csync", "59", "TYPE65280") + " " + g.pick("NOTIFY", "notify", "1", "200") + " 5300 " + g.host()},
		{g.pick("HHIT", "BRID"), g.pick("owAAAYIEWCAiaWRw", "owAA AYIEWCAiaWRw")},
		{"DNAME", "example.net."},
		{"LOC", g.location()},
		{"LOC", g.location()},
		{"X25", g.pick("311061700956", "\"311061700956\"")},
		{"AFSDB", "1 " + g.host()},
		{"APL", g.pick("1:192.0.2.0/24", "!1:192.0.2.0/25 2:2001:db8::/32", "1:0.0.0.0/0", "1:192.0.2.1/24", "!2:2001:db8::1/32 1:10.1.2.3/8 2:::ffff:192.0.2.1/96", "")},
		{g.pick("HTTPS", "SVCB", "TYPE65", "https"), g.service()},
		{g.pick("HTTPS", "SVCB", "TYPE64"), g.service()},
		{"HTTPS", g.service()},
		{"SPF", g.texts()},
		{g.pick("NID", "L64"), g.pick("10 0014:4fff:ff20:ee64", "65535 14:4FFF:0:1")},
		{"ISDN", g.text() + g.pick("", " ", " "+g.text())},
		{"A6", g.pick("0 2001:db8::1", "64 ::1 prefix", "65 2001:DB8::FFFF:ffff:1:2 P.example.net.", "128 @")},
		{"ATMA", g.pick("39.246f.00E7c9c0", "+358.400.12", "47")},
		{g.pick("UID", "GID", "UINFO", "TYPE101"), g.pick("\\# 0", "\\# 4 00000064", "\\# 3 313030")},
		{g.pick("TLSA", "SMIMEA", "TYPE52"), g.pick("3 1 1 ", "2 0 1 ", "0 255 2 ") + fold(digest)},
		{"TLSA", "3 1 1 ( 00112233445566778899AABBCCDDEEFF\n 00112233445566778899AABBCCDDEEFF )"},
		{"URI", g.pick("10 1 ", "0 65535 ") + g.pick("\"http://x\"", "\"\"", "\"ftp://a/b c;d\"", "\"\\\"\\\\\\100é\"", "\"\\\\\\b\\;\"")},
		{"NSAP", g.pick("0x47.0005.80.005a00.0000.0001.e133.ffffff000161.00", "0X47AB", "0x47.")},
		{"CERT", g.pick("PKIX", "1", "PGP", "IPKIX", "254", "65280", "oid") + " " + g.pick("0", "65535") + " " + g.pick("8", "0", "RSASHA256", "ECCGOST", "NSEC3RSASHA1", "252") + g.pick(" AQIDBA==", " AQID BA==")},
		{"OPENPGPKEY", g.pick("AQIDBA==", "AQID BA==", "mQENBFVHm5sBCADGdHQ0fw7Y")},
		{"DS", g.number() + " " + g.pick("13", "8", "RSASHA256", "ecdsap256sha256", "NSEC3RSASHA1") + " " + g.pick("2", "SHA-256", "sha256") + " " + fold(digest)},
		{g.pick("DLV", "TA"), "1 13 2 " + fold(digest)},
		{"KX", "10 " + g.host()},
		{"RT", "10 " + g.host()},
		{"PX", "10 " + g.host() + " " + g.host()},
		{g.pick("MB", "MG", "MR", "NSAP-PTR"), g.host()},
		{"MINFO", g.host() + " " + g.host()},
		{"LP", "10 " + g.host()},
		{"L32", "10 192.0.2." + g.pick("0", "255")},
		{"EUI48", g.pick("00-00-5e-00-53-2a", "00-00-5E-00-53-2A", "0-0-5e-0-53-2A")},
		{g.pick("EUI64", "TYPE109"), g.pick("00-00-5e-ef-10-00-00-2a", "0-0-5e-ef-10-0-0-2a")},
		{"CSYNC", g.pick("66 3 A NS AAAA", "1 0 TYPE65535 WKS type11 ATMA TYPE0", "0 0", "4294967295 65535 A TYPE65280")},
		{"DHCID", "AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA="},
		{"IPSECKEY", g.pick("10 1 2 192.0.2.38", "0 2 2 2001:db8::1", "10 3 2 "+g.host(), "10 0 2 .") + " AQNRU3mG7TVTO2BkR47usntb102uFJtugbo6BSGvgqt4AQ=="},
		{"HIP", "2 200100107B1A74DF365639CC39F1D578 AwEAAbdxyhNuSutc5EMzxTs9" + g.pick("", " rvs", " rvs rvs2.example.net.")},
		{"AMTRELAY", g.pick("10 0 1 192.0.2.1", "10 0 2 2001:db8::1", "10 0 3 relay", "10 0 0 .", "010 001 0 .", "10 1 1 192.0.2.1", "10 1 2 ::1", "10 1 3 "+g.host())},
		{"ZONEMD", "2018031500 1 240 " + digest[:24]},
		{"TALINK", g.host() + " " + g.host()},
		{"AVC", g.texts()},
		{"NINFO", g.texts()},
		{"RKEY", "0 3 1 AQID"},
		{"KEY", g.pick("256", "0x4200", "NOCONF|host|SIG3", "ZONE|", "USER") + " 3 8 AQID"},
		{"CDS", "0 0 0 00"},
		{g.pick("EID", "NIMLOC", "TYPE31"), g.pick("32251A030067", "3225 1a03\t0067")},
		{"NULL", g.pick("\\# 0", "\\# 2 ab CD")},
		{g.pick("TYPE40", "SINK"), g.pick("\\# 3 010203", "\\# 5 0102 03 ffff")},
		{g.pick("TYPE103", "TYPE261", "TYPE65279"), "\\# 3 026162"},
	}
	found := all[g.IntN(len(all))]
	return found[0], found[1]
}

// location is data of a LOC record.
func (g *zoneGenerator) location() string {
	degrees := func(directions ...string) string {
		return g.pick("0", "52", "7", "90") + g.pick("", " 0", " 00 0", " 0 0.0", " 00 00.000") + " " + g.pick(directions...)
	}
	if g.in(2) {
		degrees = func(directions ...string) string {
			return g.pick("0", "52", "007") + g.pick("", " 59", " 7 59", " 0 59.9", " 1 2.345", " 1 0.10") + " " + g.pick(directions...)
		}
	}
	return degrees("N", "S") + " " + degrees("E", "W") + " " + g.pick("0", "10m", "-2.00m", "-100000m", "42849672.95m", "1.5") +
		g.pick("", " 1m", " 0.05m", " 90000000.00m 10", " 1m 10000m 10m", " 0 0 0.01m")
}

// service is data of an SVCB or HTTPS record.
func (g *zoneGenerator) service() string {
	parameters := []string{
		"alpn=" + g.pick("h2", "\"h2\"", "\"h2,h3\"", "h2,h3", "\"a\\\\,b,c\"", "\\104\\050", "\"h 2;(\""), "port=" + g.pick("443", "\"8443\"", "0", "65535"), "ipv4hint=" + g.pick("192.0.2.1", "\"192.0.2.2,192.0.2.1\""),
		"ipv6hint=" + g.pick("2001:DB8::1", "2001:db8::2,::1", "\"::\"", "::ffff:192.0.2.1", "\"2001:db8::1,::FFFF:c000:201\""), "ech=AEX+DQBBAAAgACAA", g.pick("dohpath=", "key7=") + g.pick("/q{?dns}", "\"/dns-query{?dns}\""),
		g.pick("key65333", "key8", "key65280=", "key12345=\"a key3=b;c\\\"\\001\"", "key9=a\\;b\\ c", "key667=\\255", "key65535", "key65535=\"a b\""),
	}
	g.Shuffle(len(parameters), func(i, j int) { parameters[i], parameters[j] = parameters[j], parameters[i] })
	parameters = parameters[:g.IntN(4)]
	text := strings.Join(parameters, g.pick(" ", "  ", "\t"))
	if strings.Contains(text, "alpn=") && g.in(3) {
		text += g.pick(" no-default-alpn", " mandatory=alpn")
	}
	if text == "" {
		return g.pick("0 ", "1 ") + g.host()
	}
	return g.pick("1 ", "65535 ", "00002 ") + g.pick(".", "@", "svc", "Svc.Example.NET.", "\"svc\"", "\"a b;(\"", "\"@\"") + " " + text
}

// entry writes a record. Without an owner, it has that of the record before.
func (g *zoneGenerator) entry(owner, ttl, rrtype, data string) string {
	class := ""
	if g.in(3) {
		class = g.pick("IN", "in", "IN", "CLASS1", "CLASS0")
	}
	head := []string{class, ttl}
	if g.in(2) {
		head = []string{ttl, class}
	}
	var words []string
	for _, w := range append(head, rrtype) {
		if w != "" {
			words = append(words, w)
		}
	}
	text := strings.Join(words, g.pick(" ", "\t", "  ")) + g.pick(" ", "\t", "(", " ( ", " (\n", " ( ; x ( \"\n ")
	depth := strings.Count(text, "(") - strings.Count(text, "( \"")
	text += g.spread(data, depth > 0)
	if depth > 0 {
		text += g.pick(")", " )", "\n)", " ; )\n )")
	}
	if owner == "" {
		owner = g.pick(" ", "\t", "   ")
	} else {
		owner += g.pick(" ", "\t", "\t \t")
	}
	return owner + text + g.end()
}

// spread puts line ends in place of blanks where that changes nothing.
func (g *zoneGenerator) spread(data string, nested bool) string {
	if !nested || strings.ContainsAny(data, "\"\\(") {
		return data
	}
	return strings.ReplaceAll(data, " ", g.pick(" ", "\n", " ; x\n", "\t", "\n\n  "))
}

func (g *zoneGenerator) include(depth int) string {
	name := fmt.Sprintf("%s%d", g.pick("inc", "d/inc", "a b", "a;b", "q\"q"), len(g.files))
	g.files[name] = ""
	var b strings.Builder
	if g.in(3) {
		b.WriteString(g.entry("", "", "TXT", "first"))
	}
	for range g.IntN(4) {
		b.WriteString(g.line(depth + 1))
	}
	g.files[name] = g.finish(b.String())
	written := name
	if strings.ContainsAny(name, " ;\"") || g.in(3) {
		written = "\"" + strings.ReplaceAll(name, "\"", "\\\"") + "\""
	}
	origin := ""
	if g.in(3) {
		origin = " " + g.pick("sub", "example.com.", "@", "lab")
	}
	text := g.pick("$INCLUDE ", "$include\t") + written + origin + g.end()
	if g.in(2) {
		text += g.entry("", "", "TXT", "behind") // It has the owner before the $INCLUDE.
	}
	return text
}

func (g *zoneGenerator) generate() string {
	head := ""
	if g.in(3) {
		head = g.ttl() + " "
	}
	if g.in(4) {
		head = g.pick("IN "+head, head+"IN ", head+"CLASS1 ")
	}
	if g.breaks() {
		return g.pick("$GENERATE 1-2 h$ A\n", "$GENERATE 2-1 h$ A 192.0.2.$\n", "$GENERATE 1-2/0 h$ A 192.0.2.$\n", "$GENERATE 1-2/ h$ A 192.0.2.$\n", "$GENERATE 1-2 h$ MX 10 m$\n",
			"$GENERATE 1-2 h${} A 192.0.2.1\n", "$GENERATE 1-2 h${1,2,q} A 192.0.2.1\n", "$GENERATE 1-2 h$ ( A 192.0.2.1 )\n", "$GENERATE 1-2 h$ CH A 192.0.2.1\n", "$GENERATE -1-2 h$ A 192.0.2.1\n",
			"$GENERATE 1-2 \"h$\" A 192.0.2.1\n", "$GENERATE 1-1 h${0,200} A 192.0.2.1\n", "$GENERATE 1-1 h${2147483647} A 192.0.2.1\n", "$GENERATE 250-260 h$ A 192.0.2.$\n", "$GENERATE 1-2 h$ OPT x\n")
	}
	number := func() string {
		if g.in(2) {
			return "$"
		}
		format := fmt.Sprintf("${%s%d", g.pick("", "-", "+"), g.IntN(20))
		if g.in(2) {
			format += fmt.Sprintf(",%d", g.IntN(7))
			if !g.in(3) {
				format += "," + g.pick("d", "o", "x", "X", "n", "N")
			}
		}
		return format + "}"
	}
	owner := g.pick("h", "", "\\$", "$$", "H", "a.") + number() + g.pick("", ".sub", "x", "-"+number(), ".example.com.", "\\.z")
	if g.in(10) {
		owner = g.owner() // Many records of one owner.
		if strings.ContainsAny(owner, "\"( ") {
			owner = "www"
		}
	}
	data := "NS ns$.example.net."
	for first := true; first || g.wrong > 0 && (strings.ContainsAny(data[:1], "NH") || strings.HasPrefix(data, "TYPE")); first = false {
		data = g.generated(number)
	}
	return "$GENERATE " + g.pick("0-3", "1-2", "5-11/3", "16-18", "250-252", "1-1x") + " " + owner + " " + head + data + g.end()
}

func (g *zoneGenerator) generated(number func() string) string {
	return g.pick(
		"A 192.0.2.$", "A 192.0.2.$", "PTR c"+number(), "PTR host-"+number()+".example.net.", "TXT \"t "+number()+"\"", "TXT t"+number(), "TXT \"\\\"a b\\\" $\"", "MX \"10 m"+number()+"\"",
		"MX \"0 .\"", "SRV \"0 0 5060 s$\"", "CAA \"0 issue \\\"ca$.net\\\"\"", "A \"192.0.2.1 ; x\"", "TXT \"( a\tb )\"", "NS ns$.example.net.", "TYPE65280 \"\\# 1 ${0,2,x}\"", "AAAA 2001:db8::${0,0,x}",
		"TXT \"$$ \\$ x\"", "HINFO \"a b\"")
}

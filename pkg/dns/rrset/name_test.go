package rrset

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
)

func TestCanonicalName(t *testing.T) {
	longest := strings.Repeat(strings.Repeat("a", 63)+".", 3) + strings.Repeat("b", 61) + "."
	for name, test := range map[string]struct{ in, want string }{
		"already canonical":        {"www.example.com.", "www.example.com."},
		"final dot added":          {"www.example.com", "www.example.com."},
		"upper case":               {"WWW.Example.COM.", "www.example.com."},
		"root":                     {".", "."},
		"single label":             {"com", "com."},
		"wildcard":                 {"*.Example.com.", "*.example.com."},
		"service labels":           {"_sip._tcp.example.com.", "_sip._tcp.example.com."},
		"classless reverse":        {"0/25.2.0.192.in-addr.arpa.", "0/25.2.0.192.in-addr.arpa."},
		"escaped dot":              {`first\.last.example.com.`, `first\.last.example.com.`},
		"escaped dot in decimals":  {`first\046last.example.com.`, `first\.last.example.com.`},
		"needless escape":          {`\w\ww.example.com.`, "www.example.com."},
		"escaped upper case":       {`\087ww.example.com.`, "www.example.com."},
		"service instance":         {`Büro 2._ipp._TCP.Example.com`, `b\195\188ro\0322._ipp._tcp.example.com.`},
		"service instance, escape": {`Office\ 2._ipp._tcp.example.com.`, `office\0322._ipp._tcp.example.com.`},
		"service instance, dot":    {`Printer 2\. floor._ipp._udp.example.com.`, `printer\0322\.\032floor._ipp._udp.example.com.`},
		"space":                    {`a\ b.example.com.`, `a\032b.example.com.`},
		"UTF-8 escaped":            {`b\195\188cher.example.`, `b\195\188cher.example.`},
		"all that BIND escapes":    {`\"\(\)\.\;\\\@\$.`, `\"\(\)\.\;\\\@\$.`},
		"dollar":                   {"$ttl.example.", `\$ttl.example.`},
		"quote needs no escape":    {`it\'s.example.`, "it's.example."},
		"trailing escaped dot":     {`a\.`, `a\..`},
		"null byte":                {`\000.example.`, `\000.example.`},
		"longest label":            {strings.Repeat("x", 63) + ".example.", strings.Repeat("x", 63) + ".example."},
		"longest name":             {longest, longest},
		"longest name without dot": {longest[:len(longest)-1], longest},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := CanonicalName(test.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCanonicalNameRefuses(t *testing.T) {
	for name, test := range map[string]struct{ in, message string }{
		"nothing":             {"", "the name is empty"},
		"leading dot":         {".example.com.", "empty label"},
		"two dots":            {"a..example.com.", "empty label"},
		"two dots at the end": {"example.com..", "empty label"},
		"only dots":           {"..", "empty label"},
		"long label":          {strings.Repeat("x", 64) + ".example.", "64 bytes long; a label has at most 63"},
		"long name":           {strings.Repeat("abcdefg.", 32), "257 bytes long; a name has at most 255"},
		"space":               {"my host.example.", `the character ' '`},
		"newline":             {"a\nb.example.", `the character '\n'`},
		"mail address":        {"admin@example.com.", `the character '@'`},
		"comment":             {"a;b.", `the character ';'`},
		"stray escape":        {`a\`, `ends in a single "\"`},
		"short escape":        {`a\12.`, "without three digits"},
		"big escape":          {`a\256.`, `escape \256`},
		"IDN":                 {"bücher.example.", `write "xn--bcher-kva.example."`},
		"IDN with underscore": {"_sip._tcp.Bücher.example", `write "_sip._tcp.xn--bcher-kva.example"`},
		"not UTF-8":           {"b\xfccher.example.", "not ASCII"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := CanonicalName(test.in)
			if err == nil {
				t.Fatalf("accepted as %q", got)
			}
			if !strings.Contains(err.Error(), test.message) {
				t.Errorf("message %q does not say %q", err, test.message)
			}
		})
	}
}

// The example of RFC 4034 section 6.1, in the forms that BIND prints.
func TestCompareNamesAsRFC4034(t *testing.T) {
	want := []string{
		"example.", "a.example.", "yljkjljk.a.example.", "z.a.example.", "zabc.a.example.", "z.example.",
		`\001.z.example.`, "*.z.example.", `\200.z.example.`,
	}
	got := slices.Clone(want)
	for range 20 {
		rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		slices.SortFunc(got, CompareNames)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
	for _, pair := range [][2]string{{".", "a."}, {"b.a.", "a.b."}, {"a.", "aa."}, {`a\.b.`, `a.b.`}} {
		if CompareNames(pair[0], pair[1]) >= 0 || CompareNames(pair[1], pair[0]) <= 0 {
			t.Errorf("%s does not stand before %s", pair[0], pair[1])
		}
	}
}

func TestIsSubdomain(t *testing.T) {
	for name, test := range map[string]struct {
		name, ancestor string
		want           bool
	}{
		"itself":              {"example.com.", "example.com.", true},
		"below":               {"a.b.example.com.", "example.com.", true},
		"everything below .":  {"com.", ".", true},
		"above":               {"com.", "example.com.", false},
		"same ending":         {"badexample.com.", "example.com.", false},
		"escaped dot":         {`a\.example.com.`, "example.com.", false},
		"escaped backslash":   {`a\\.example.com.`, "example.com.", true},
		"three backslashes":   {`a\\\.example.com.`, "example.com.", false},
		"escape in the label": {`a\.b.example.com.`, "example.com.", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsSubdomain(test.name, test.ancestor); got != test.want {
				t.Errorf("IsSubdomain(%q, %q) = %v", test.name, test.ancestor, got)
			}
		})
	}
}

func TestParent(t *testing.T) {
	for in, want := range map[string]string{
		"a.b.example.": "b.example.", "example.": ".", ".": "", "": "", `a\.b.example.`: "example.", `a\\.b.`: "b.",
	} {
		if got := ParentName(in); got != want {
			t.Errorf("Parent(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestNamesUp(t *testing.T) {
	for name, test := range map[string]struct {
		zone, name  string
		below, from string
	}{
		"inside the zone":    {"example.", "a.b.example.", "a.b.example. b.example.", "a.b.example. b.example. example. ."},
		"an escaped dot":     {"example.", `a\.b.example.`, `a\.b.example.`, `a\.b.example. example. .`},
		"the zone itself":    {"example.", "example.", "", "example. ."},
		"outside the zone":   {"b.example.", "a.bb.example.", "", "a.bb.example. bb.example. example. ."},
		"the zone above":     {"b.example.", "example.", "", "example. ."},
		"a zone of the root": {".", "b.example.", "b.example. example.", "b.example. example. ."},
		"the root":           {".", ".", "", "."},
		"no name":            {".", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(slices.Collect(NamesBelow(test.zone, test.name)), " "); got != test.below {
				t.Errorf("below %s: %q, want %q", test.zone, got, test.below)
			}
			if got := strings.Join(slices.Collect(NamesUpFrom(test.name)), " "); got != test.from {
				t.Errorf("from %s: %q, want %q", test.name, got, test.from)
			}
		})
	}
}

func FuzzCanonicalName(f *testing.F) {
	for _, s := range []string{"", ".", "www.Example.com", `a\.b\\.c\032.`, "*.x.", "bücher.de", `\000`, "a..b", `a\`, "$x.", strings.Repeat("a.", 140)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		name, err := CanonicalName(in)
		if err != nil {
			if name != "" {
				t.Fatalf("%q came with the error %v", name, err)
			}
			return
		}
		if again, err := CanonicalName(name); err != nil || again != name {
			t.Fatalf("%q became %q and then %q, %v", in, name, again, err)
		}
		wire := make([]byte, 256)
		n, err := dns.PackDomainName(name, wire, 0, nil, false)
		if err != nil {
			t.Fatalf("%q (from %q) does not pack: %v", name, in, err)
		}
		fromWire, _, err := dns.UnpackDomainName(wire[:n], 0)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := CanonicalName(fromWire); err != nil || back != name {
			t.Fatalf("%q went over the wire and came back as %q, %v", name, back, err)
		}
		if p := ParentName(name); p != "" && (!IsSubdomain(name, p) || CompareNames(p, name) >= 0) {
			t.Fatalf("%q is not below its parent %q", name, p)
		}
	})
}

func FuzzCompareNames(f *testing.F) {
	f.Add("a.example.", `b\.c.example.`)
	f.Add(`\000.`, ".")
	f.Add("b.example.", "a.example.")
	f.Add(`a\.example.`, "a.example.")
	f.Add("example.", ".")
	f.Fuzz(func(t *testing.T, x, y string) {
		a, errA := CanonicalName(x)
		b, errB := CanonicalName(y)
		if errA != nil || errB != nil {
			t.Skip()
		}
		ab, ba := CompareNames(a, b), CompareNames(b, a)
		if (ab < 0) != (ba > 0) || (ab == 0) != (a == b) {
			t.Fatalf("%q and %q: %d and %d", a, b, ab, ba)
		}
		if slow := compareEscaped(a, b); (slow < 0) != (ab < 0) || (slow == 0) != (ab == 0) {
			t.Fatalf("%q and %q: %d, label by label %d", a, b, ab, slow)
		}
	})
}

func BenchmarkCanonicalName(b *testing.B) {
	for name, in := range map[string]string{"canonical": "www.example.com.", "upper case": "WWW.Example.com"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := CanonicalName(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestSpelledName(t *testing.T) {
	for in, want := range map[string]string{
		"www.example.com":  `www.example.com.`,
		"WWW.Example.com.": `WWW.Example.com.`,
		`Office\032Printer\0322\.\032floor._ipp._tcp.example.com`: `Office\032Printer\0322\.\032floor._ipp._tcp.example.com.`,
		"Büro._ipp._tcp.example.com":                              `B\195\188ro._ipp._tcp.example.com.`,
		".":                                                       ".",
	} {
		got, err := SpelledName(in)
		if err != nil || got != want {
			t.Errorf("%q is spelled %q, %v, want %q", in, got, err, want)
		}
		canonical, err := CanonicalName(in)
		if again, _ := CanonicalName(got); err != nil || again != canonical {
			t.Errorf("%q is %q, and as it is spelled %q", in, canonical, again)
		}
	}
	if got, err := SpelledName("Bücher.example.com"); err == nil {
		t.Errorf("a host name that is not ASCII became %q", got)
	}
}

func TestCheckDeclarable(t *testing.T) {
	refused := map[uint16]string{
		dns.TypeSOA: "the DNSZone declares", dns.TypeDNSKEY: "servers maintain", dns.TypeNSEC3: "servers maintain", dns.TypeCDS: "servers maintain",
		dns.TypeSIG: "servers maintain", dns.TypeOPT: "no data of a zone", dns.TypeANY: "no data of a zone", dns.TypeTSIG: "no data of a zone", 0: "no data of a zone",
		dns.TypeMD: "obsolete",
	}
	for rrtype, want := range refused {
		if err := CheckDeclarable(rrtype); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", TypeName(rrtype), err, want)
		}
	}
	for _, rrtype := range []uint16{dns.TypeA, dns.TypeHTTPS, dns.TypeDS, dns.TypeDNAME, dns.TypeKEY, 256, 65280} {
		if err := CheckDeclarable(rrtype); err != nil {
			t.Errorf("%s: %v", TypeName(rrtype), err)
		}
	}
}

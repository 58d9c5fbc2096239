package declaration

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func TestOwnerName(t *testing.T) {
	for name, test := range map[string]struct{ in, zone, want string }{
		"relative":             {"www", "example.com", "www.example.com."},
		"apex":                 {"@", "example.com.", "example.com."},
		"deep":                 {"a.b.c", "example.com.", "a.b.c.example.com."},
		"upper case":           {"WWW", "Example.COM", "www.example.com."},
		"wildcard":             {"*", "example.com.", "*.example.com."},
		"wildcard below":       {"*.apps", "example.com.", "*.apps.example.com."},
		"underscore":           {"_sip._tcp", "example.com.", "_sip._tcp.example.com."},
		"absolute":             {"www.example.com.", "example.com.", "www.example.com."},
		"absolute apex":        {"EXAMPLE.com.", "example.com.", "example.com."},
		"escaped dot":          {`a\.b`, "example.com.", `a\.b.example.com.`},
		"escaped dot last":     {`a\.`, "example.com.", `a\..example.com.`},
		"reverse":              {"1", "2.0.192.in-addr.arpa", "1.2.0.192.in-addr.arpa."},
		"like the zone's end":  {"com", "example.com.", "com.example.com."},
		"another zone's name":  {"example.org._report._dmarc", "example.com.", "example.org._report._dmarc.example.com."},
		"first label is zone":  {"example.com.www", "example.com.", "example.com.www.example.com."},
		"repeated on purpose":  {"example.com.example.com.", "example.com.", "example.com.example.com."},
		"in the root":          {"www", ".", "www."},
		"longest label":        {strings.Repeat("x", 63), "example.com.", strings.Repeat("x", 63) + ".example.com."},
		"escaped star is star": {`\042`, "example.com.", "*.example.com."},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := OwnerName(test.in, test.zone)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOwnerNameRefuses(t *testing.T) {
	for name, test := range map[string]struct{ in, message string }{
		"nothing":               {"", `"@" is the zone itself`},
		"outside":               {"www.example.org.", "outside the zone example.com."},
		"above":                 {"com.", "outside the zone"},
		"same ending":           {"badexample.com.", "outside the zone"},
		"zone repeated":         {"www.example.com", `would become www.example.com.example.com.; write "www"`},
		"zone name as apex":     {"example.com", `write "@"`},
		"star inside":           {"a.*", "whole first label"},
		"star in a label":       {"a*", "whole first label"},
		"two stars":             {"*.*", "whole first label"},
		"too long label":        {strings.Repeat("x", 64), "at most 63"},
		"too long with zone":    {strings.Repeat("abcdefg.", 30) + "abcdefg", "at most 255"},
		"IDN":                   {"bücher", `write "xn--bcher-kva"`},
		"space":                 {"my host", "write \\032"},
		"empty label":           {"a..b", "empty label"},
		"leading dot":           {".www", "empty label"},
		"only a dot":            {".", "outside the zone"},
		"escape without digits": {`a\1`, "three digits"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := OwnerName(test.in, "example.com.")
			if err == nil {
				t.Fatalf("accepted as %q", got)
			}
			if !strings.Contains(err.Error(), test.message) {
				t.Errorf("message %q does not say %q", err, test.message)
			}
		})
	}
	if _, err := OwnerName("www", "exa mple."); err == nil {
		t.Error("a bad zone name was accepted")
	}
}

func FuzzOwnerName(f *testing.F) {
	for _, s := range []string{"@", "www", "*.a", `a\.`, "www.example.com", "x.example.com.", `\042.b`, "é"} {
		f.Add(s, "example.com")
	}
	f.Fuzz(func(t *testing.T, name, zone string) {
		owner, err := OwnerName(name, zone)
		if err != nil {
			return
		}
		origin, err := rrset.CanonicalName(zone)
		if err != nil {
			t.Fatalf("zone %q was accepted: %v", zone, err)
		}
		if c, err := rrset.CanonicalName(owner); err != nil || c != owner {
			t.Fatalf("%q in %q became %q, which is not canonical: %q, %v", name, zone, owner, c, err)
		}
		if !rrset.IsSubdomain(owner, origin) {
			t.Fatalf("%q in %q became %q outside of it", name, zone, owner)
		}
		if again, err := OwnerName(owner, zone); err != nil || again != owner {
			t.Fatalf("%q is not its own owner name: %q, %v", owner, again, err)
		}
	})
}

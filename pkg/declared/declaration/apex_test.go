package declaration

import (
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func TestMailbox(t *testing.T) {
	for in, want := range map[string]string{
		"admin@example.com":       "admin.example.com.",
		"Admin@Example.com.":      "admin.example.com.",
		"a@b.":                    "a.b.",
		"first.last@example.com":  `first\.last.example.com.`,
		"dns+ops@example.com":     "dns+ops.example.com.",
		"admin.example.com.":      "admin.example.com.",
		"admin.example.com":       "admin.example.com.",
		`first\.last.example.com`: `first\.last.example.com.`,
	} {
		got, err := mailboxName(in)
		if err != nil || got != want {
			t.Errorf("Mailbox(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	for in, message := range map[string]string{
		"": "there is no address", "@example.com": "not a mail address", "admin@": "not a mail address",
		"a@b@c": "not a mail address", "müller@example.com": "ASCII", "a b@example.com": "blank",
		"a@exa mple.com": "character", strings.Repeat("x", 64) + "@example.com": "at most 63",
	} {
		if got, err := mailboxName(in); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("Mailbox(%q) = %q, %v, want an error that says %q", in, got, err, message)
		}
	}
}

func FuzzMailbox(f *testing.F) {
	for _, s := range []string{"admin@example.com", "a.b@c.", "x.y.", "@", `a"b\c@d`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := mailboxName(in)
		if err != nil {
			return
		}
		if c, err := rrset.CanonicalName(got); err != nil || c != got {
			t.Fatalf("%q became %q, which is not canonical: %v", in, got, err)
		}
	})
}

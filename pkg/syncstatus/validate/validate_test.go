package validate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

const ds = ". IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D\n"

// Trust anchors are DS and DNSKEY records and nothing else. A file that becomes unusable changes nothing.
func TestAnchors(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "; a comment\n": 0, ds: 1, ds + "Example.test. 300 IN DS 1 13 2 " + strings.Repeat("ab", 32): 2,
		"example.test. IN A 192.0.2.1": -1, "example.test. IN DS 1": -1, "$INCLUDE /etc/passwd": -1, strings.Repeat(";", maxAnchorBytes+1): -1,
	} {
		anchors, err := ParseAnchors([]byte(text))
		if (err != nil) != (want < 0) || err == nil && len(anchors) != want {
			t.Errorf("%.60q: %v, %v", text, anchors, err)
		}
	}
	path := filepath.Join(t.TempDir(), "anchors")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(ds)
	f, err := OpenAnchors(path)
	if err != nil {
		t.Fatal(err)
	}
	first := f.Anchors()
	if err := f.Reload(); err != nil || f.Anchors() != first || len(*first) != 1 {
		t.Errorf("the same file: %v, %v", err, f.Anchors())
	}
	write("nonsense")
	if err := f.Reload(); err == nil || f.Anchors() != first {
		t.Errorf("a file that cannot be used: %v, %v", err, f.Anchors())
	}
	write("")
	if err := f.Reload(); err != nil || len(*f.Anchors()) != 0 {
		t.Errorf("an empty file: %v, %v", err, f.Anchors())
	}
}

func signatureText(covered, expires string) string {
	return covered + " 13 2 300 " + expires + " 20261101000000 4711 example.test. c2lnbmF0dXJl"
}

func setAt(name string, rrtype uint16, rdata ...string) rrset.RRset {
	return rrset.New(rrset.Key{Name: name, Type: rrtype}, 300, rdata...)
}

// A scan that goes on from the one before finds what one from scratch finds: of several signatures of an RRset the last one counts, and
// those of RRsets that do not exist do not.
func TestScan(t *testing.T) {
	content := func(expiries ...string) *observe.Mirror {
		var sets []rrset.RRset
		for i, expires := range expiries {
			name := fmt.Sprintf("r%d.example.test.", i)
			sets = append(sets, setAt(name, dns.TypeA, "192.0.2.1"),
				setAt(name, dns.TypeRRSIG, signatureText("A", expires), signatureText("A", "20261102000000"), signatureText("TXT", "20261101000000")))
		}
		return observe.NewMirror("example.test.", rrset.SOA{}, sets...)
	}
	var last scan
	for _, c := range []struct {
		m    *observe.Mirror
		want string
	}{
		{content("20261210000000", "20261205000000", "20261220000000"), "20261205000000 r1.example.test. A"},
		{content("20261210000000", "20261205000000", "20261203000000"), "20261203000000 r2.example.test. A"},
		{content("20261210000000", "20261205000000", "20261230000000"), "20261205000000 r1.example.test. A"},
		{content("20261210000000"), "20261210000000 r0.example.test. A"},
		{content(), " . None"},
		{content("20261210000000", "20261211000000"), "20261210000000 r0.example.test. A"},
	} {
		last = last.of(c.m)
		fresh := scan{}.of(c.m)
		if got := last.first; got != fresh.first || c.want != " . None" && got.expires+" "+got.String() != c.want || c.want == " . None" && got.expires != "" {
			t.Errorf("%s %s, want %s, from scratch %s", last.first.expires, last.first, c.want, fresh.first)
		}
	}
}

func TestExpiry(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	at := limits{timeText(now), timeText(now.Add(72 * time.Hour))}
	for expires, want := range map[string]string{"": "Secure", "20261127115959": "Bogus", "20261127120001": "Expiring", "20261130120001": "Secure"} {
		if v := (expiring{expires: expires}).verdict(at); string(v.Security) != want {
			t.Errorf("%q: %+v, want %s", expires, v, want)
		}
	}
	for rdata, want := range map[string]bool{
		"": false, "A 13 2 300": false, signatureText("A", "20261130120001"): true, signatureText("A", "1795230639"): false,
		strings.Repeat("x ", 20): false,
	} {
		if _, ok := parseSignature(rdata); ok != want {
			t.Errorf("%q: %t", rdata, ok)
		}
	}
}

// BIND's private records say whether a zone is being signed: algorithm, key tag, removal, completion.
func TestBeingSigned(t *testing.T) {
	for rdata, want := range map[string]bool{`\# 5 0D12670000`: true, `\# 5 0D12670001`: false, `\# 5 0D12670100`: true, `\# 5 0D12670101`: false, `\# 6 000180000000`: false} {
		canonical, err := rrset.Parse(rrset.Key{Name: "example.test.", Type: typeSigning}, rdata)
		if err != nil {
			t.Fatal(err)
		}
		m := observe.NewMirror("example.test.", rrset.SOA{}, setAt("example.test.", typeSigning, canonical))
		if got := isBeingSigned(m, "example.test."); got != want {
			t.Errorf("%s: %t", rdata, got)
		}
	}
}

// A verdict about an answer counts while the zone's keys are vouched for by what they were then, however the parent is signed; a Bogus one
// until the server has answered again.
func TestAnswerIsJudgedByItsChain(t *testing.T) {
	record := func(text string) dns.RR {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		return rr
	}
	one, other := record("example.test. DS 1 13 2 "+strings.Repeat("ab", 32)), record("example.test. DS 2 13 2 "+strings.Repeat("cd", 32))
	signed := func(expires string) dns.RR { return record("example.test. RRSIG " + signatureText("DS", expires)) }
	by := func(anchors ...dns.RR) *Chain {
		return &Chain{Source: ParentDS, Anchors: anchors, Delegation: dnssec.Verdict{Security: dnssec.Secure}}
	}
	now := by(one, signed("20261210000000"))
	for name, c := range map[string]struct {
		answer Answer
		want   bool
	}{
		"by the same":           {Answer{Chain: now}, true},
		"signed anew":           {Answer{Chain: by(one, signed("20261220000000"))}, true},
		"by another DS record":  {Answer{Chain: by(other)}, false},
		"by a further one":      {Answer{Chain: by(one, other)}, false},
		"by its own keys":       {Answer{Chain: &Chain{Source: OwnKeys, Anchors: now.Anchors, Delegation: now.Delegation}}, false},
		"Bogus by another":      {Answer{Chain: by(other), Verdict: dnssec.Verdict{Security: dnssec.Bogus}}, true},
		"unanswered after that": {Answer{Chain: by(other), AfterBogus: true}, true},
	} {
		w := &View{
			Result: &Result{Servers: []*Apex{{Chain: now}}}, zone: Zone{Servers: make([]Server, 1)},
			Answer: func(int, rrset.Key) *Answer { return &c.answer },
		}
		if got := w.answer(0, rrset.Key{}) != nil; got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

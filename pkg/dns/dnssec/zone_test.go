package dnssec

import (
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

var (
	today = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	at    = Clock{Now: today, Notice: 24 * time.Hour}
)

const day = 24 * time.Hour

// signingKey is a key with its private half.
type signingKey struct {
	*dns.DNSKEY
	private crypto.Signer
}

func newSigningKey(t testing.TB, zone string, algorithm uint8, flags uint16) signingKey {
	t.Helper()
	key := &dns.DNSKEY{Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 3600}, Flags: flags, Protocol: 3, Algorithm: algorithm}
	private, err := key.Generate(map[uint8]int{dns.RSASHA256: 2048, dns.RSASHA1NSEC3SHA1: 2048, dns.ECDSAP384SHA384: 384}[algorithm] | map[bool]int{true: 256}[algorithm == dns.ECDSAP256SHA256 || algorithm == dns.ED25519])
	if err != nil {
		t.Fatal(err)
	}
	return signingKey{key, private.(crypto.Signer)}
}

// fixedKey is the same in each run: inputs of fuzz tests have its signatures.
func fixedKey(zone string) signingKey {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	return signingKey{&dns.DNSKEY{
		Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 3600}, Flags: 257, Protocol: 3, Algorithm: dns.ED25519,
		PublicKey: encode(private.Public().(ed25519.PublicKey)),
	}, private}
}

// sign signs records that were valid for a day and will be for so long.
func (k signingKey) sign(t testing.TB, records []dns.RR, valid time.Duration, adjust ...func(*dns.RRSIG)) *dns.RRSIG {
	t.Helper()
	s := &dns.RRSIG{
		Hdr: dns.RR_Header{Ttl: records[0].Header().Ttl}, Algorithm: k.Algorithm, KeyTag: k.KeyTag(), SignerName: k.Hdr.Name,
		Inception: uint32(today.Add(-100 * day).Unix()), Expiration: uint32(today.Add(valid).Unix()),
	}
	for _, f := range adjust {
		f(s)
	}
	if err := s.Sign(k.private, records); err != nil {
		t.Fatal(err)
	}
	return s
}

// testZone has the RRsets of a zone and signs what a message takes of them.
type testZone struct {
	t    testing.TB
	name string
	sets map[rrset.Key][]dns.RR
	key  signingKey
	keys *Keys
}

// newTestZone reads the lines of a zone file.
func newTestZone(t testing.TB, name, text string) *testZone {
	t.Helper()
	z := &testZone{t: t, name: name, sets: map[rrset.Key][]dns.RR{}, key: fixedKey(name)}
	for _, rr := range records(t, "$ORIGIN "+name+"\n$TTL 3600\n"+text) {
		key := rrset.Key{Name: canonical(rr.Header().Name), Type: rr.Header().Rrtype}
		z.sets[key] = append(z.sets[key], rr)
	}
	z.keys = Trust(name, z.signed([]dns.RR{z.key.DNSKEY}), []dns.RR{z.key.ToDS(dns.SHA256)}, at)
	if v := z.keys.Verdict(); v.Security != Secure {
		t.Fatalf("the keys are %+v", v)
	}
	return z
}

func records(t testing.TB, text string) (all []dns.RR) {
	t.Helper()
	parser := dns.NewZoneParser(strings.NewReader(text), "", "")
	for rr, ok := parser.Next(); ok; rr, ok = parser.Next() {
		all = append(all, rr)
	}
	if parser.Err() != nil {
		t.Fatal(parser.Err())
	}
	return all
}

func (z *testZone) signed(set []dns.RR) []dns.RR {
	return append(append([]dns.RR{}, set...), z.key.sign(z.t, set, 10*day))
}

// section has the RRsets that a list names: "ns1 A, *.w MX=a.z.w" are two, the second one expanded from a wildcard. "- b NS" is unsigned.
func (z *testZone) section(list string) (all []dns.RR) {
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		item, unsigned := strings.CutPrefix(item, "- ")
		item, expanded, isExpanded := strings.Cut(item, "=")
		name, rrtype, _ := strings.Cut(item, " ")
		set := z.sets[rrset.Key{Name: z.absolute(name), Type: dns.StringToType[rrtype]}]
		if len(set) == 0 {
			z.t.Fatalf("the zone has no %q", item)
		}
		if !unsigned {
			set = z.signed(set)
		}
		for _, rr := range set {
			if rr = dns.Copy(rr); isExpanded {
				rr.Header().Name = z.absolute(expanded)
			}
			all = append(all, rr)
		}
	}
	return all
}

func (z *testZone) absolute(name string) string {
	switch {
	case name == "@":
		return z.name
	case strings.HasSuffix(name, "."):
		return name
	}
	return name + "." + z.name
}

// reply answers a question such as "ns1 A" with the sections.
func (z *testZone) reply(question string, rcode int, answer, authority string) *dns.Msg {
	name, rrtype, _ := strings.Cut(question, " ")
	m := new(dns.Msg)
	m.SetQuestion(z.absolute(name), dns.StringToType[rrtype])
	m.Response, m.Rcode, m.Answer, m.Ns = true, rcode, z.section(answer), z.section(authority)
	return m
}

func decode(t testing.TB, text string) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func encode(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }

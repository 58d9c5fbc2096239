package dnssec

import (
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// The zone of RFC 4035 appendix A, with a key of ours.
const plainExample = `
@        SOA  ns1 bugs.x.w 1081539377 3600 300 3600000 3600
@        NS   ns1
@        NS   ns2
@        MX   1 xx
@        NSEC a NS SOA MX RRSIG NSEC DNSKEY
a        NS   ns1.a
a        NS   ns2.a
a        DS   57855 5 1 B6DCD485719ADCA18E5F3D48A2331627FDD3636B
a        NSEC ai NS DS RRSIG NSEC
ai       A    192.0.2.9
ai       NSEC b A HINFO AAAA RRSIG NSEC
b        NS   ns1.b
b        NS   ns2.b
b        NSEC ns1 NS RRSIG NSEC
ns1      A    192.0.2.1
ns1      NSEC ns2 A RRSIG NSEC
ns2      A    192.0.2.2
ns2      NSEC *.w A RRSIG NSEC
*.w      MX   1 ai
*.w      NSEC x.w MX RRSIG NSEC
x.w      MX   1 xx
x.w      NSEC x.y.w MX RRSIG NSEC
x.y.w    MX   1 xx
x.y.w    NSEC xx MX RRSIG NSEC
xx       A    192.0.2.10
xx       NSEC @ A HINFO AAAA RRSIG NSEC
`

// The zone of RFC 5155 appendix A, with a key of ours.
const hashedExample = `
@     SOA ns1 bugs.x.w 1 3600 300 3600000 3600
@     NS  ns1
a     NS  ns1.a
a     DS  58470 5 1 3079F1593EBAD6DC121E202A8B766A6A4837206C
c     NS  ns1.c
*.w   MX  1 ai
x.w   MX  1 xx
0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3 1 1 12 aabbccdd 2t7b4g4vsa5smi47k61mv5bv1a22bojr NS SOA MX RRSIG DNSKEY NSEC3PARAM
2t7b4g4vsa5smi47k61mv5bv1a22bojr NSEC3 1 1 12 aabbccdd 2vptu5timamqttgl4luu9kg21e0aor3s A RRSIG
2vptu5timamqttgl4luu9kg21e0aor3s NSEC3 1 1 12 aabbccdd 35mthgpgcu1qg68fab165klnsnk3dpvl MX RRSIG
35mthgpgcu1qg68fab165klnsnk3dpvl NSEC3 1 1 12 AABBCCDD b4um86eghhds6nea196smvmlo4ors995 NS DS RRSIG
b4um86eghhds6nea196smvmlo4ors995 NSEC3 1 1 12 aabbccdd gjeqe526plbf1g8mklp59enfd789njgi MX RRSIG
gjeqe526plbf1g8mklp59enfd789njgi NSEC3 1 1 12 aabbccdd ji6neoaepv8b5o6k4ev33abha8ht9fgc A HINFO AAAA RRSIG
ji6neoaepv8b5o6k4ev33abha8ht9fgc NSEC3 1 1 12 aabbccdd k8udemvp1j2f7eg6jebps17vp3n8i58h
k8udemvp1j2f7eg6jebps17vp3n8i58h NSEC3 1 1 12 aabbccdd kohar7mbb8dc2ce8a9qvl8hon4k53uhi
q04jkcevqvmu85r014c7dkba38o0ji5r NSEC3 1 1 12 aabbccdd r53bq7cc2uvmubfu5ocmm6pers9tk9en A RRSIG
r53bq7cc2uvmubfu5ocmm6pers9tk9en NSEC3 1 1 12 aabbccdd t644ebqk9bibcna874givr6joj62mlhv MX RRSIG
`

// short names the NSEC3 records by the names whose hashes they are.
var short = strings.NewReplacer(
	"H(@)", "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3", "H(ns1)", "2t7b4g4vsa5smi47k61mv5bv1a22bojr NSEC3", "H(a)", "35mthgpgcu1qg68fab165klnsnk3dpvl NSEC3",
	"H(x.w)", "b4um86eghhds6nea196smvmlo4ors995 NSEC3", "H(y.w)", "ji6neoaepv8b5o6k4ev33abha8ht9fgc NSEC3", "H(w)", "k8udemvp1j2f7eg6jebps17vp3n8i58h NSEC3",
	"H(ns2)", "q04jkcevqvmu85r014c7dkba38o0ji5r NSEC3", "H(*.w)", "r53bq7cc2uvmubfu5ocmm6pers9tk9en NSEC3")

// example is a response of an appendix B, or a change of one.
type example struct {
	question          string
	rcode             int
	answer, authority string
	need              int // so many RRsets at the end of the authority section are needed.
	want              Security
}

const nx = dns.RcodeNameError

// The responses of RFC 4035 appendix B and RFC 5155 appendix B are accepted, and not if a part of the proof is missing. In the zone of RFC 5155
// opt-out weakens the proofs that cover a next closer name (section 9.2).
func TestExamples(t *testing.T) {
	for zone, examples := range map[string]map[string]example{
		plainExample: {
			"4035 B.1 answer":               {"x.w MX", 0, "x.w MX", "@ NS", 0, Secure},
			"4035 B.2 name error":           {"ml A", nx, "", "@ SOA, b NSEC, @ NSEC", 2, Secure},
			"4035 B.3 no data":              {"ns1 MX", 0, "", "@ SOA, ns1 NSEC", 1, Secure},
			"4035 B.4 referral, signed":     {"mc.a MX", 0, "", "- a NS, a DS", 1, Secure},
			"4035 B.5 referral, unsigned":   {"mc.b MX", 0, "", "- b NS, b NSEC", 1, Insecure},
			"4035 B.6 wildcard":             {"a.z.w MX", 0, "*.w MX=a.z.w", "@ NS, x.y.w NSEC", 1, Secure},
			"4035 B.7 wildcard, no data":    {"a.z.w AAAA", 0, "", "@ SOA, x.y.w NSEC, *.w NSEC", 2, Secure},
			"4035 B.8 DS, asked the child":  {"@ DS", 0, "", "@ SOA, @ NSEC", 0, Unknown},
			"empty name between names":      {"y.w A", 0, "", "@ SOA, x.w NSEC", 1, Secure},
			"no DS at unsigned delegation":  {"b DS", 0, "", "@ SOA, b NSEC", 1, Secure},
			"below a delegation, no name":   {"x.b A", nx, "", "@ SOA, b NSEC, @ NSEC", -1, Bogus},
			"at a delegation, no data":      {"b A", 0, "", "@ SOA, b NSEC", -1, Bogus},
			"wildcard beside a closer name": {"q.y.w MX", 0, "*.w MX=q.y.w", "x.w NSEC", -1, Bogus},
			"no wildcard, but empty name":   {"y.w A", nx, "", "@ SOA, x.w NSEC, @ NSEC", -1, Bogus},
			"NSEC of an expanded wildcard":  {"x.w A", 0, "", "@ SOA, *.w NSEC=x.w", -1, Bogus},
			"ANY, and all records are gone": {"ns1 ANY", 0, "", "@ SOA, ns1 NSEC", -1, Bogus},
			"the type is in the bitmap":     {"x.w MX", 0, "", "@ SOA, x.w NSEC", -1, Bogus},
			"the bitmap of another name":    {"ai MX", 0, "", "@ SOA, ns1 NSEC", -1, Bogus},
			"the wildcard itself":           {"*.w MX", 0, "*.w MX", "", 0, Secure},
		},
		hashedExample: {
			"5155 B.1 name error":              {"a.c.x.w A", nx, "", "@ SOA, H(@), H(x.w), H(a)", 3, Insecure},
			"5155 B.2 no data":                 {"ns1 MX", 0, "", "@ SOA, H(ns1)", 1, Secure},
			"5155 B.2.1 no data, empty name":   {"y.w A", 0, "", "@ SOA, H(y.w)", 1, Secure},
			"5155 B.3 referral, opt-out":       {"mc.c MX", 0, "", "- c NS, H(a), H(@)", 2, Insecure},
			"5155 B.4 wildcard":                {"a.z.w MX", 0, "*.w MX=a.z.w", "@ NS, H(ns2)", 1, Insecure},
			"5155 B.5 wildcard, no data":       {"a.z.w AAAA", 0, "", "@ SOA, H(w), H(ns2), H(*.w)", -1, Insecure},
			"5155 B.6 DS, asked the child":     {"@ DS", 0, "", "@ SOA, H(@)", 0, Unknown},
			"referral, signed":                 {"mc.a MX", 0, "", "- a NS, a DS", 1, Secure},
			"no DS, opt-out":                   {"c DS", 0, "", "@ SOA, H(a), H(@)", 2, Insecure},
			"DS denied with other bits":        {"a DS", 0, "", "@ SOA, H(a)", -1, Bogus},
			"a name that exists is not denied": {"ns1 A", nx, "", "@ SOA, H(ns1), H(@), H(a)", -1, Bogus},
			"below a delegation, no name":      {"x.a A", nx, "", "@ SOA, H(a), H(@), H(ns2)", -1, Bogus},
		},
	} {
		z := newTestZone(t, "example.", zone)
		for name, e := range examples {
			t.Run(name, func(t *testing.T) {
				z.t = t
				authority := short.Replace(e.authority)
				if v := z.keys.Judge(z.reply(e.question, e.rcode, e.answer, authority), at); v.Security != e.want {
					t.Errorf("%+v", v)
				}
				parts := strings.Split(authority, ",")
				for i := len(parts) - max(0, e.need); i < len(parts); i++ {
					without := strings.Join(append(append([]string{}, parts[:i]...), parts[i+1:]...), ",")
					if v := z.keys.Judge(z.reply(e.question, e.rcode, e.answer, without), at); v.Security != Bogus || v.Cause() != "NSEC Missing" {
						t.Errorf("without %q: %+v", parts[i], v)
					}
				}
			})
		}
	}
}

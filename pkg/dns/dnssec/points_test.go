package dnssec

import (
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

const pointZone = `
@    SOA ns1 bugs 1 3600 300 3600000 3600
@    NS  ns1
@    NSEC alias NS SOA RRSIG NSEC DNSKEY
alias CNAME www
alias NSEC d CNAME RRSIG NSEC
chain CNAME host.sub
d    DNAME e
d    NSEC ns1 DNAME RRSIG NSEC
e    A 192.0.2.7
sub  NS ns.sub
sub  NSEC www NS RRSIG NSEC
a.sub NS ns.sub
a.sub DS 1 13 2 00
host.sub A 192.0.2.9
www.e A 192.0.2.8
x.d  CNAME x.e
x.e  A 192.0.2.8
www  A 192.0.2.1
www  A 192.0.2.2
www  NSEC @ A RRSIG NSEC
`

// signatureOf returns the signature of a type in a section.
func signatureOf(section []dns.RR, rrtype uint16) *dns.RRSIG {
	for _, rr := range section {
		if s, ok := rr.(*dns.RRSIG); ok && s.TypeCovered == rrtype {
			return s
		}
	}
	return nil
}

func TestAnswers(t *testing.T) {
	z := newTestZone(t, "point.test.", pointZone)
	www := func() *dns.Msg { return z.reply("www A", 0, "www A", "") }
	// resigned answers with a signature that was made differently.
	resigned := func(valid time.Duration, adjust ...func(*dns.RRSIG)) *dns.Msg {
		m := z.reply("www A", 0, "- www A", "")
		m.Answer = append(m.Answer, z.key.sign(t, m.Answer, valid, adjust...))
		return m
	}
	change := func(m *dns.Msg, f func(m *dns.Msg)) *dns.Msg { f(m); return m }
	for name, c := range map[string]struct {
		m     *dns.Msg
		want  Security
		cause string
	}{
		"secure": {www(), Secure, ""},
		"another case": {change(www(), func(m *dns.Msg) {
			m.Answer[0].Header().Name = "WWW.Point.TEST."
			m.Question[0].Name = "wWw.point.test."
		}), Secure, ""},
		"unsorted, twice": {change(www(), func(m *dns.Msg) { slices.Reverse(m.Answer); m.Answer = append(m.Answer, m.Answer[1]) }), Secure, ""},
		"a TTL above the original one is cut by the resolver": {change(www(), func(m *dns.Msg) { m.Answer[0].Header().Ttl = 86400 }), Secure, ""},
		"a wrong signature beside a valid one": {change(www(), func(m *dns.Msg) {
			wrong := *signatureOf(m.Answer, dns.TypeA)
			wrong.OrigTtl++
			m.Answer = append([]dns.RR{&wrong}, m.Answer...)
		}), Secure, ""},
		"rdata":                      {change(www(), func(m *dns.Msg) { m.Answer[0].(*dns.A).A[3]++ }), Bogus, "DNSSEC Bogus"},
		"no signature":               {z.reply("www A", 0, "- www A", ""), Bogus, "RRSIGs Missing"},
		"expired":                    {resigned(-time.Second), Bogus, "Signature Expired"},
		"expires soon":               {resigned(time.Hour), Expiring, ""},
		"not yet valid":              {resigned(day, func(s *dns.RRSIG) { s.Inception = uint32(today.Unix()) + 1 }), Bogus, "Signature Not Yet Valid"},
		"never valid":                {resigned(-day, func(s *dns.RRSIG) { s.Inception = s.Expiration + 1 }), Bogus, "Signature Expired Before Valid"},
		"another signer":             {resigned(day, func(s *dns.RRSIG) { s.SignerName = "other.test." }), Bogus, "RRSIGs Missing"},
		"signer above":               {resigned(day, func(s *dns.RRSIG) { s.SignerName = "test." }), Bogus, "RRSIGs Missing"},
		"signer below":               {resigned(day, func(s *dns.RRSIG) { s.SignerName = "www.point.test." }), Unknown, ""},
		"another key":                {resigned(day, func(s *dns.RRSIG) { s.KeyTag++ }), Bogus, "DNSKEY Missing"},
		"ED448 only":                 {change(www(), func(m *dns.Msg) { signatureOf(m.Answer, dns.TypeA).Algorithm = dns.ED448 }), Bogus, "Unsupported DNSKEY Algorithm"},
		"too many labels":            {change(www(), func(m *dns.Msg) { signatureOf(m.Answer, dns.TypeA).Labels = 4 }), Bogus, "DNSSEC Bogus"},
		"too few labels":             {change(www(), func(m *dns.Msg) { signatureOf(m.Answer, dns.TypeA).Labels = 1 }), Bogus, "DNSSEC Bogus"},
		"unsigned authority section": {z.reply("www A", 0, "www A", "- @ NS"), Bogus, "RRSIGs Missing"},
		"CNAME":                      {z.reply("alias A", 0, "alias CNAME, www A", ""), Secure, ""},
		"CNAME, no data":             {z.reply("alias MX", 0, "alias CNAME", "@ SOA, www NSEC"), Secure, ""},
		"CNAME, and no proof":        {z.reply("alias MX", 0, "alias CNAME", "@ SOA"), Bogus, "NSEC Missing"},
		"CNAME denied":               {z.reply("alias MX", 0, "", "@ SOA, alias NSEC"), Bogus, "NSEC Missing"},
		"DNAME":                      {z.reply("x.d A", 0, "d DNAME, - x.d CNAME, x.e A", ""), Secure, ""},
		"DNAME without CNAME":        {z.reply("x.d A", 0, "d DNAME, x.e A", ""), Secure, ""},
		"DNAME and another CNAME":    {change(z.reply("x.d A", 0, "d DNAME, - x.d CNAME, x.e A", ""), func(m *dns.Msg) { m.Answer[2].(*dns.CNAME).Target = "www.point.test." }), Bogus, "DNSSEC Bogus"},
		"below a DNAME, no name":     {z.reply("x.d A", nx, "", "@ SOA, d NSEC, @ NSEC"), Bogus, "NSEC Missing"},
		"CNAME into a child zone on the same server":  {z.reply("chain A", 0, "chain CNAME, - host.sub A", ""), Secure, ""},
		"CNAME, and the signature of its target gone": {z.reply("alias A", 0, "alias CNAME, - www A", ""), Bogus, "RRSIGs Missing"},
		"the child zone":                      {change(z.reply("host.sub A", 0, "- host.sub A", ""), func(m *dns.Msg) { m.Authoritative = true }), Unknown, ""},
		"the child zone, not authoritative":   {z.reply("host.sub A", 0, "- host.sub A", "sub NSEC"), Unknown, ""},
		"the child zone, of DS":               {z.reply("host.sub DS", 0, "", "@ SOA, sub NSEC"), Unknown, ""},
		"a delegation below the child zone":   {z.reply("x.a.sub A", 0, "", "- a.sub NS, - a.sub DS"), Unknown, ""},
		"a referral to a known cut":           {z.reply("host.sub A", 0, "", "- sub NS, sub NSEC"), Insecure, ""},
		"a referral to a known cut, no proof": {z.reply("host.sub A", 0, "", "- sub NS, alias NSEC"), Bogus, "NSEC Missing"},
		"a referral with NXDOMAIN":            {z.reply("host.sub A", nx, "", "- sub NS, sub NSEC"), Unknown, ""},
		"a referral for a DS record":          {z.reply("sub DS", 0, "", "- sub NS, sub NSEC"), Secure, ""},
		"CNAME question below a DNAME":        {z.reply("x.d CNAME", 0, "d DNAME, - x.d CNAME", ""), Secure, ""},
		"NSEC question at a CNAME":            {z.reply("alias NSEC", 0, "alias NSEC", ""), Secure, ""},
		"REFUSED":                             {z.reply("www A", dns.RcodeRefused, "", ""), Unknown, ""},
		"truncated":                           {change(www(), func(m *dns.Msg) { m.Truncated = true }), Unknown, ""},
		"signatures":                          {z.reply("www RRSIG", 0, "", ""), Unknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := z.keys.Judge(c.m, at, "Sub.point.test.")
			if v.Security != c.want || v.Cause() != c.cause || (v.Detail == "") != (c.want == Secure || c.want == Expiring) {
				t.Errorf("%+v, cause %q", v, v.Cause())
			}
		})
	}
	v := z.keys.Judge(resigned(3*day), at)
	if !v.Expires.Equal(today.Add(3*day)) || !slices.Equal(v.KeyTags, []uint16{z.key.KeyTag()}) {
		t.Errorf("%+v", v)
	}
	if v := z.keys.Judge(resigned(99*day), Clock{Now: today.Add(11 * day)}); v.Cause() != "Signature Expired" {
		t.Errorf("after the signature of the keys has expired: %+v", v)
	}
}

// The bitmap of a name with a CNAME record denies what can be beside it (RFC 4035 section 2.5).
func TestBesideCNAME(t *testing.T) {
	alias := types{dns.TypeCNAME, dns.TypeRRSIG}
	for rrtype, want := range map[uint16]bool{dns.TypeA: false, dns.TypeDS: false, dns.TypeCNAME: false, dns.TypeNSEC: true, dns.TypeKEY: true} {
		if alias.deny(rrtype) != want {
			t.Error(dns.TypeToString[rrtype])
		}
	}
}

// Times are serial numbers: in 2106 they begin anew.
func TestSerialTime(t *testing.T) {
	z := newTestZone(t, "point.test.", pointZone)
	turn := time.Unix(1<<32, 0)
	v := newVerifier(z.name, nil, Clock{Now: turn}, &work{})
	if f := v.checkTime(&set{}, &dns.RRSIG{Inception: 1<<32 - 10, Expiration: 10}); f != nil {
		t.Error(f)
	}
	if !v.timeOf(10).Equal(turn.Add(10*time.Second)) || !v.timeOf(1<<32-10).Equal(turn.Add(-10*time.Second)) {
		t.Error(v.timeOf(10), v.timeOf(1<<32-10))
	}
}

func TestTrust(t *testing.T) {
	const zone = "point.test."
	ksk, zsk := newSigningKey(t, zone, dns.ECDSAP256SHA256, 257), newSigningKey(t, zone, dns.RSASHA256, 256)
	set := []dns.RR{ksk.DNSKEY, zsk.DNSKEY}
	answer := append(slices.Clone(set), ksk.sign(t, set, 10*day))
	ds := func(f func(*dns.DS)) *dns.DS { d := ksk.ToDS(dns.SHA256); f(d); return d }
	same := func(*dns.DS) {}
	revoked := newSigningKey(t, zone, dns.ED25519, 257|dns.REVOKE)
	signedBy := func(k signingKey) []dns.RR {
		set := []dns.RR{k.DNSKEY}
		return append(set, k.sign(t, set, 10*day))
	}
	noZoneKey := newSigningKey(t, zone, dns.ED25519, 1)
	for name, c := range map[string]struct {
		answer, anchors []dns.RR
		want            Security
		cause           string
	}{
		"DS":                                 {answer, []dns.RR{ds(same)}, Secure, ""},
		"upper case":                         {answer, []dns.RR{ds(func(d *dns.DS) { d.Digest = strings.ToUpper(d.Digest); d.Hdr.Name = "Point.Test." })}, Secure, ""},
		"SHA-1":                              {answer, []dns.RR{ksk.ToDS(dns.SHA1)}, Secure, ""},
		"SHA-384":                            {answer, []dns.RR{ksk.ToDS(dns.SHA384)}, Secure, ""},
		"SHA-1 beside a wrong SHA-256":       {answer, []dns.RR{ksk.ToDS(dns.SHA1), ds(func(d *dns.DS) { d.Digest = strings.Repeat("0", 64) })}, Bogus, "DNSKEY Missing"},
		"a trusted key":                      {answer, []dns.RR{ksk.DNSKEY}, Secure, ""},
		"one DS of two":                      {answer, []dns.RR{ds(func(d *dns.DS) { d.KeyTag++ }), ds(same)}, Secure, ""},
		"no DS":                              {answer, nil, Insecure, ""},
		"a DS of another zone":               {answer, []dns.RR{ds(func(d *dns.DS) { d.Hdr.Name = "test." })}, Insecure, ""},
		"unknown algorithm":                  {answer, []dns.RR{ds(func(d *dns.DS) { d.Algorithm = 200 })}, Insecure, "Unsupported DNSKEY Algorithm"},
		"unknown digest":                     {answer, []dns.RR{ds(func(d *dns.DS) { d.DigestType = 200 })}, Insecure, "Unsupported DS Digest Type"},
		"unknown beside known":               {answer, []dns.RR{ds(func(d *dns.DS) { d.DigestType = 200 }), ds(func(d *dns.DS) { d.KeyTag++ })}, Bogus, "DNSKEY Missing"},
		"a DS of the key that does not sign": {answer, []dns.RR{zsk.ToDS(dns.SHA256)}, Bogus, "DNSKEY Missing"},
		"no keys":                            {nil, []dns.RR{ds(same)}, Bogus, "DNSKEY Missing"},
		"no signature":                       {set, []dns.RR{ds(same)}, Bogus, "RRSIGs Missing"},
		"revoked":                            {signedBy(revoked), []dns.RR{revoked.ToDS(dns.SHA256)}, Bogus, "DNSKEY Missing"},
		"no zone key":                        {signedBy(noZoneKey), []dns.RR{noZoneKey.ToDS(dns.SHA256)}, Bogus, "DNSKEY Missing"},
	} {
		t.Run(name, func(t *testing.T) {
			keys := Trust(zone, c.answer, c.anchors, at)
			if v := keys.Verdict(); v.Security != c.want || v.Cause() != c.cause {
				t.Errorf("%+v, cause %q", v, v.Cause())
			}
			m := new(dns.Msg)
			m.SetQuestion(zone, dns.TypeA)
			m.Response = true
			if v := keys.Judge(m, at); c.want != Secure && v.Security != c.want {
				t.Errorf("an answer is %+v", v)
			}
		})
	}
}

// Data is accepted with one of several algorithms (RFC 6840 section 5.11), but not by a revoked key or one that is no zone key.
func TestKeysOfData(t *testing.T) {
	const zone = "point.test."
	ksk := newSigningKey(t, zone, dns.ECDSAP384SHA384, 257)
	for name, c := range map[string]struct {
		algorithm uint8
		flags     uint16
		want      Security
		cause     string
	}{
		"RSASHA1":         {dns.RSASHA1NSEC3SHA1, 256, Secure, ""},
		"RSASHA256":       {dns.RSASHA256, 256, Secure, ""},
		"ECDSAP256SHA256": {dns.ECDSAP256SHA256, 256, Secure, ""},
		"revoked":         {dns.ED25519, 256 | dns.REVOKE, Bogus, "DNSKEY Missing"},
		"no zone key":     {dns.ED25519, 0, Bogus, "No Zone Key Bit Set"},
	} {
		t.Run(name, func(t *testing.T) {
			zsk := newSigningKey(t, zone, c.algorithm, c.flags)
			set := []dns.RR{ksk.DNSKEY, zsk.DNSKEY}
			keys := Trust(zone, append(slices.Clone(set), ksk.sign(t, set, day)), []dns.RR{ksk.ToDS(dns.SHA256)}, Clock{Now: today})
			m := new(dns.Msg)
			m.SetQuestion(zone, dns.TypeA)
			m.Response, m.Answer = true, records(t, zone+" 60 A 192.0.2.1")
			m.Answer = append(m.Answer, zsk.sign(t, m.Answer, day))
			if v := keys.Judge(m, Clock{Now: today}); v.Security != c.want || v.Cause() != c.cause {
				t.Errorf("%+v", v)
			}
		})
	}
}

// A signature of ECDSA has one length: what is padded is not accepted, as BIND does not.
func TestPaddedSignature(t *testing.T) {
	const zone = "point.test."
	key := newSigningKey(t, zone, dns.ECDSAP256SHA256, 257)
	set := []dns.RR{key.DNSKEY}
	signature := key.sign(t, set, day)
	raw := decode(t, signature.Signature)
	r, s := new(big.Int).SetBytes(raw[:32]), new(big.Int).SetBytes(raw[32:])
	signature.Signature = encode(append(r.FillBytes(make([]byte, 33)), s.FillBytes(make([]byte, 33))...))
	if v := Trust(zone, append(set, signature), []dns.RR{key.DNSKEY}, at).Verdict(); v.Security != Bogus {
		t.Errorf("%+v", v)
	}
}

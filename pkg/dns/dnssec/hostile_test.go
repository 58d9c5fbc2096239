package dnssec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// KeyTrap (CVE-2023-50387): many keys of one tag, and many signatures that each of them could have made.
func TestKeyTrap(t *testing.T) {
	z := newTestZone(t, "trap.test.", "www A 192.0.2.1")
	id := keyID{dns.ED25519, z.key.KeyTag()}
	for range 500 { // The order of bytes that are 16 bits apart does not change the tag.
		other := *z.key.DNSKEY
		raw := decode(t, other.PublicKey)
		i, k := len(z.keys.keys[id])%15, len(z.keys.keys[id])/15%15
		raw[2*i], raw[2*k+2] = raw[2*k+2], raw[2*i]
		raw[1], raw[31] = raw[31], raw[1]
		other.PublicKey = encode(raw)
		if other.KeyTag() != id.tag {
			t.Fatal("another tag")
		}
		z.keys.keys[id] = append([]*dns.DNSKEY{&other}, z.keys.keys[id]...)
	}
	m := z.reply("www A", 0, "www A", "")
	right := *signatureOf(m.Answer, dns.TypeA)
	for i := range 500 {
		wrong := right
		wrong.OrigTtl, wrong.Expiration = uint32(i), right.Expiration+1
		m.Answer = append(m.Answer, &wrong)
	}
	w := new(work)
	if v := z.keys.judge(m, at, w, nil); v.Security != Bogus || !strings.Contains(v.Detail, "verifications") || w.verifications != maxVerifications {
		t.Errorf("%+v after %+v", v, w)
	}
	// The same with the DNSKEY RRset, and with DS records that all keys of the tag have to be compared with.
	var answer, anchors []dns.RR
	for _, key := range z.keys.keys[id] {
		answer, anchors = append(answer, key), append(anchors, z.key.ToDS(dns.SHA384))
		s := right
		s.Hdr.Name, s.TypeCovered, s.Labels = z.name, dns.TypeDNSKEY, 2
		answer = append(answer, &s)
	}
	w = new(work)
	if v := trust(z.name, answer, anchors, at, w).Verdict(); v.Security != Bogus || w.verifications > maxVerifications || w.hashes > maxHashes {
		t.Errorf("%+v after %+v", v, w)
	}
}

// NSEC3 with 2500 iterations (CVE-2023-50868): nothing is hashed. With as many as are followed, names with many labels cost a bounded number
// of hashes.
func TestIterations(t *testing.T) {
	for _, c := range []struct {
		iterations, hashes int
		want               Security
		cause              string
	}{{2500, 0, Insecure, "Unsupported NSEC3 Iterations Value"}, {51, 0, Insecure, "Unsupported NSEC3 Iterations Value"}, {50, 123, Bogus, "NSEC Missing"}} {
		var lines strings.Builder
		var names []string
		for i := range 40 {
			name := fmt.Sprintf("%032d", i)
			fmt.Fprintf(&lines, "%s NSEC3 1 1 %d aabb %032d A\n", name, c.iterations, i+1)
			names = append(names, name+" NSEC3")
		}
		z := newTestZone(t, "trap.test.", lines.String())
		m := z.reply(strings.Repeat("a.", 121)+"a A", nx, "", strings.Join(names, ","))
		w := new(work)
		v := z.keys.judge(m, at, w, nil)
		if v.Security != c.want || v.Cause() != c.cause && v.Code != dns.ExtendedErrorCodeUnsupportedNSEC3IterValue || w.hashes != c.hashes || w.verifications != 40 {
			t.Errorf("%+v after %+v", v, w)
		}
		// What has too many iterations is not even Insecure if its signature is wrong (RFC 9276 section 3.2).
		m.Ns[0].(*dns.NSEC3).Salt = "ccdd"
		if v := z.keys.Judge(m, at); v.Cause() != "DNSSEC Bogus" {
			t.Errorf("%+v", v)
		}
	}
}

// A chain that never ends is not followed to its end.
func TestLoop(t *testing.T) {
	z := newTestZone(t, "trap.test.", "a CNAME b\nb CNAME a")
	if v := z.keys.Judge(z.reply("a A", 0, "a CNAME, b CNAME", ""), at); v.Security != Unknown {
		t.Errorf("%+v", v)
	}
}

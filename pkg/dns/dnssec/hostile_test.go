package dnssec

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// keyTrap makes keys of one tag, and a message with signatures that each of them could have made.
func keyTrap(t testing.TB, z *testZone, number int) (keys []*dns.DNSKEY, m *dns.Msg) {
	for n := range number { // The order of bytes that are 16 bits apart does not change the tag.
		key := *z.key.DNSKEY
		raw := decode(t, key.PublicKey)
		i, k := n%15, n/15%15
		raw[2*i], raw[2*k+2] = raw[2*k+2], raw[2*i]
		raw[1], raw[31] = raw[31], raw[1]
		key.PublicKey = encode(raw)
		if key.KeyTag() != z.key.KeyTag() {
			t.Fatal("another tag")
		}
		keys = append(keys, &key)
	}
	m = z.reply("www A", 0, "www A", "")
	right := *signatureOf(m.Answer, dns.TypeA)
	for i := range number {
		wrong := right
		wrong.OrigTtl, wrong.Expiration = uint32(i), right.Expiration+1
		m.Answer = append(m.Answer, &wrong)
	}
	return append(keys, z.key.DNSKEY), m
}

// trapped adds the keys with as many signatures of them to a message, and DS records that all keys have to be compared with.
func trapped(z *testZone, keys []*dns.DNSKEY, m *dns.Msg) *dns.Msg {
	m = m.Copy()
	signature := *signatureOf(m.Answer, dns.TypeA)
	signature.Hdr.Name, signature.TypeCovered, signature.Labels = z.name, dns.TypeDNSKEY, uint8(dns.CountLabel(z.name))
	for i, key := range keys {
		signature := signature
		signature.OrigTtl = uint32(i)
		m.Answer, m.Ns = append(m.Answer, key, &signature), append(m.Ns, z.key.ToDS(dns.SHA384))
	}
	return m
}

// KeyTrap (CVE-2023-50387).
func TestKeyTrap(t *testing.T) {
	z := newTestZone(t, "trap.test.", "www A 192.0.2.1")
	keys, m := keyTrap(t, z, 500)
	z.keys.keys[keyID{dns.ED25519, z.key.KeyTag()}] = keys
	w := new(work)
	if v := z.keys.judge(m, at, w, nil); v.Security != Bogus || !strings.Contains(v.Detail, "verifications") || w.verifications != maxVerifications {
		t.Errorf("%+v after %+v", v, w)
	}
	m = trapped(z, keys, m)
	w = new(work)
	if v := trust(z.name, m.Answer, m.Ns, at, w).Verdict(); v.Security != Bogus || w.verifications > maxVerifications || w.hashes > maxHashes {
		t.Errorf("%+v after %+v", v, w)
	}
}

// A signature of many records costs more.
func TestLargeSet(t *testing.T) {
	z := newTestZone(t, "trap.test.", "www A 192.0.2.1")
	m := z.reply("www A", 0, "- www A", "")
	for i := range 2000 {
		m.Answer = append(m.Answer, &dns.A{Hdr: m.Answer[0].(*dns.A).Hdr, A: net.IPv4(10, 0, byte(i>>8), byte(i))})
	}
	right := z.key.sign(t, m.Answer, 10*day)
	for i, verifications := range []int{21, 42, 63, 63} {
		w := new(work)
		m := m.Copy()
		for range i {
			wrong := *right
			wrong.OrigTtl++
			m.Answer = append(m.Answer, &wrong)
		}
		m.Answer = append(m.Answer, right)
		if v := z.keys.judge(m, at, w, nil); w.verifications != verifications || v.Security != map[bool]Security{true: Secure, false: Bogus}[i < 3] {
			t.Errorf("%d: %+v after %+v", i, v, w)
		}
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

// Nothing verifies a CNAME record at a known cut, so that it answers no question.
func TestUnverified(t *testing.T) {
	z := newTestZone(t, "trap.test.", "@ SOA ns1 hm 1 3600 300 3600000 3600\nsub NS ns1.sub\nsub CNAME other.test.\nb A 192.0.2.1")
	z.addNSEC3(false)
	m := z.reply("sub DS", 0, "- sub CNAME", "")
	for key, set := range z.sets {
		if key.Type == dns.TypeNSEC3 {
			m.Ns = append(m.Ns, z.signed(set)...)
		}
	}
	if v := z.keys.Judge(m, at, "sub.trap.test."); v.Security != Bogus {
		t.Errorf("%+v", v)
	}
}

// A chain that never ends is not followed to its end.
func TestLoop(t *testing.T) {
	z := newTestZone(t, "trap.test.", "a CNAME b\nb CNAME a")
	if v := z.keys.Judge(z.reply("a A", 0, "a CNAME, b CNAME", ""), at); v.Security != Unknown {
		t.Errorf("%+v", v)
	}
}

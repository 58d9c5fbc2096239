package dnssec

import (
	"crypto"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/test/daemon"
	"github.com/lockstep-dns/lockstep/test/named"
)

// TestDigestsLikeResolvers: which DS records count among some of several digest types, as unbound sees it. delv takes SHA-256 beside SHA-384.
func TestDigestsLikeResolvers(t *testing.T) {
	const zone = "digests.test."
	z := &liveZone{name: zone, dir: t.TempDir()}
	key := newKeys(t, zone, z.dir, "ECDSAP256SHA256")
	signed := z.sign(t, z.dir, "$ORIGIN "+zone+"\n"+liveApex)
	var text strings.Builder
	for _, rr := range signed {
		fmt.Fprintln(&text, rr)
	}
	server := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, File: text.String()}}})
	other := newSigningKey(t, zone, dns.ECDSAP256SHA256, 257)
	rsa := newSigningKey(t, zone, dns.RSASHA256, 257)
	ds := func(k *dns.DNSKEY, digest uint8) *dns.DS { return k.ToDS(digest) }
	wrong := func(d *dns.DS) *dns.DS {
		d = dns.Copy(d).(*dns.DS)
		d.Digest = strings.Repeat("0", len(d.Digest))
		return d
	}
	typed := func(d *dns.DS, digest uint8) *dns.DS {
		d = dns.Copy(d).(*dns.DS)
		d.DigestType = digest
		return d
	}
	for name, set := range map[string][]dns.RR{
		"SHA-256":                              {ds(key, 2)},
		"SHA-256, wrong SHA-384":               {ds(key, 2), wrong(ds(key, 4))},
		"SHA-384, wrong SHA-256":               {ds(key, 4), wrong(ds(key, 2))},
		"SHA-1, wrong SHA-256":                 {ds(key, 1), wrong(ds(key, 2))},
		"SHA-256, wrong SHA-1":                 {ds(key, 2), wrong(ds(key, 1))},
		"SHA-256, another key's SHA-384":       {ds(key, 2), ds(other.DNSKEY, 4)},
		"SHA-384, another key's SHA-256":       {ds(key, 4), ds(other.DNSKEY, 2)},
		"SHA-1, another key's SHA-256":         {ds(key, 1), ds(other.DNSKEY, 2)},
		"SHA-1, another algorithm's SHA-256":   {ds(key, 1), ds(rsa.DNSKEY, 2)},
		"SHA-256, another algorithm's SHA-384": {ds(key, 2), ds(rsa.DNSKEY, 4)},
		"SHA-256, unknown digest":              {ds(key, 2), typed(ds(key, 2), 200)},
		"SHA-1, unknown digest":                {ds(key, 1), typed(ds(key, 2), 200)},
		"unknown digest":                       {typed(ds(key, 2), 200)},
	} {
		t.Run(name, func(t *testing.T) {
			unbound, delv := opinions(t, server.Addr, zone, set)
			ours := Trust(zone, signed, set, Clock{Now: time.Now()}).Verdict()
			t.Logf("ours %s, unbound %s, delv %q", ours.Security, unbound, delv)
			if ours.Security != unbound {
				t.Errorf("ours is %+v, unbound's %s", ours, unbound)
			}
		})
	}
}

// opinions are what unbound and delv make of the SOA of a zone on a server, with DS records as trust anchors.
func opinions(t *testing.T, server netip.AddrPort, zone string, set []dns.RR) (unbound Security, delv string) {
	t.Helper()
	dir, at := t.TempDir(), named.Reserve(t)
	var ds, anchors strings.Builder
	for _, rr := range set {
		d := rr.(*dns.DS)
		fmt.Fprintln(&ds, d)
		fmt.Fprintf(&anchors, "  %q static-ds %d %d %d \"%s\";\n", zone, d.KeyTag, d.Algorithm, d.DigestType, d.Digest)
	}
	for file, content := range map[string]string{
		"ds": ds.String(), "anchors": "trust-anchors {\n" + anchors.String() + "};\n",
		"unbound.conf": fmt.Sprintf("server:\n  interface: %s@%d\n  do-daemonize: no\n  use-syslog: no\n  chroot: \"\"\n  username: \"\"\n  pidfile: \"\"\n  directory: %q\n  num-threads: 1\n"+
			"  do-ip6: no\n  do-not-query-localhost: no\n  module-config: \"validator iterator\"\n  trust-anchor-file: \"ds\"\n  local-zone: \"test.\" nodefault\n"+
			"  qname-minimisation: no\nstub-zone:\n  name: %q\n  stub-addr: %s@%d\n", at.Addr(), at.Port(), dir, zone, server.Addr(), server.Port()),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	daemon.Start(t, daemon.Find(t, "unbound", "unbound"), []string{"-c", filepath.Join(dir, "unbound.conf")}, at, nil)
	out, _ := exec.CommandContext(t.Context(), "delv", "-a", filepath.Join(dir, "anchors"), "@"+server.Addr().String(), "-p", fmt.Sprint(server.Port()), "+root="+zone, zone, "SOA").CombinedOutput()
	first, _, _ := strings.Cut(string(out), "\n")
	return opinionOfUnbound(t, at.String(), zone), first
}

// opinionOfUnbound is what unbound makes of the SOA of a zone.
func opinionOfUnbound(t *testing.T, at, zone string) Security {
	t.Helper()
	m := new(dns.Msg).SetQuestion(zone, dns.TypeSOA)
	m.SetEdns0(4096, true)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		reply, _, err := (&dns.Client{Net: "tcp", Timeout: 20 * time.Second}).Exchange(m, at)
		switch {
		case err != nil: // It does not listen yet.
		case reply.Rcode == dns.RcodeServerFailure:
			return Bogus
		case reply.AuthenticatedData:
			return Secure
		default:
			return Insecure
		}
	}
	t.Fatalf("unbound at %s does not answer", at)
	return ""
}

// TestKeysLikeResolvers: which keys and signatures count, as unbound and delv see it. Ours is the stricter verdict.
func TestKeysLikeResolvers(t *testing.T) {
	const zone = "keys.test."
	with := func(flags uint16, protocol, algorithm uint8, bits int) signingKey {
		key := &dns.DNSKEY{Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 300}, Flags: flags, Protocol: protocol, Algorithm: algorithm}
		private, err := key.Generate(bits)
		if err != nil {
			t.Fatal(err)
		}
		return signingKey{key, private.(crypto.Signer)}
	}
	all := func(keys ...signingKey) []signingKey { return keys }
	const p256, rsa256, rsa1, rsa512 = dns.ECDSAP256SHA256, dns.RSASHA256, dns.RSASHA1, dns.RSASHA512
	ksk, zsk, csk := with(257, 3, p256, 256), with(256, 3, p256, 256), with(256, 3, p256, 256)
	now := time.Now()
	valid := func(s *dns.RRSIG) {
		s.Inception, s.Expiration = uint32(now.Add(-day).Unix()), uint32(now.Add(60*day).Unix()) // named signs anew what expires soon.
	}
	for name, c := range map[string]struct {
		keys, anchors, vouch, sign []signingKey
		adjust                     func(*dns.RRSIG)
	}{
		"KSK and ZSK":                   {keys: all(ksk, zsk), anchors: all(ksk), vouch: all(ksk), sign: all(zsk)},
		"the KSK signs all":             {keys: all(ksk, zsk), anchors: all(ksk), vouch: all(ksk), sign: all(ksk)},
		"no SEP flag":                   {keys: all(csk), anchors: all(csk), vouch: all(csk), sign: all(csk)},
		"a revoked KSK":                 {keys: all(with(385, 3, p256, 256))},
		"a revoked ZSK":                 {keys: all(ksk, with(384, 3, p256, 256)), anchors: all(ksk), vouch: all(ksk)},
		"no zone key":                   {keys: all(ksk, with(0, 3, p256, 256)), anchors: all(ksk), vouch: all(ksk)},
		"no zone key, with a DS record": {keys: all(with(1, 3, p256, 256))},
		"another protocol":              {keys: all(ksk, with(256, 2, p256, 256)), anchors: all(ksk), vouch: all(ksk)},
		"RSA of 1024 bits":              {keys: all(with(257, 3, rsa256, 1024))},
		"RSASHA1":                       {keys: all(with(257, 3, rsa1, 1024))},
		"RSASHA512 of 1024 bits":        {keys: all(with(257, 3, rsa512, 1024))},
		"two algorithms, one signs":     {keys: all(ksk, with(257, 3, rsa256, 2048)), anchors: nil, vouch: all(ksk), sign: all(ksk)},
		"a signer in upper case":        {keys: all(ksk, zsk), anchors: all(ksk), vouch: all(ksk), sign: all(zsk), adjust: func(s *dns.RRSIG) { s.SignerName = "KEYS.Test." }},
		"an original TTL below the TTL": {keys: all(ksk, zsk), anchors: all(ksk), vouch: all(ksk), sign: all(zsk), adjust: func(s *dns.RRSIG) { s.OrigTtl = 30 }},
		"an original TTL above the TTL": {keys: all(ksk, zsk), anchors: all(ksk), vouch: all(ksk), sign: all(zsk), adjust: func(s *dns.RRSIG) { s.OrigTtl = 3000 }},
	} {
		t.Run(name, func(t *testing.T) {
			if c.anchors == nil {
				c.anchors = c.keys
			}
			last := c.keys[len(c.keys)-1:]
			if c.vouch == nil {
				c.vouch = last
			}
			if c.sign == nil {
				c.sign = last
			}
			if c.adjust == nil {
				c.adjust = func(*dns.RRSIG) {}
			}
			var set, anchors, apex []dns.RR
			for _, key := range c.keys {
				set = append(set, key.DNSKEY)
			}
			apex = append(apex, set...)
			for _, key := range c.vouch {
				apex = append(apex, key.sign(t, set, 0, valid))
			}
			for _, key := range c.anchors {
				anchors = append(anchors, key.ToDS(dns.SHA256))
			}
			var text strings.Builder
			soa := records(t, "$ORIGIN "+zone+"\n@ 300 SOA ns1 hostmaster 1 3600 600 86400 60\n")
			reply := new(dns.Msg).SetQuestion(zone, dns.TypeSOA)
			reply.Response, reply.Answer = true, soa
			for _, key := range c.sign {
				reply.Answer = append(reply.Answer, key.sign(t, soa, 0, valid, c.adjust))
			}
			for _, rr := range append(slices.Clone(apex), reply.Answer...) {
				fmt.Fprintln(&text, rr)
			}
			for _, line := range []string{"@ 300 NS ns1", "ns1 300 A 192.0.2.1", "@ 60 NSEC ns1 NS SOA RRSIG NSEC DNSKEY", "ns1 60 NSEC @ A RRSIG NSEC"} {
				set := records(t, "$ORIGIN "+zone+"\n"+line+"\n")
				fmt.Fprintln(&text, set[0])
				for _, key := range c.sign {
					fmt.Fprintln(&text, key.sign(t, set, 0, valid))
				}
			}
			server := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, File: text.String()}}})
			unbound, delv := opinions(t, server.Addr, zone, anchors)
			clock := Clock{Now: time.Now()}
			ours := Trust(zone, apex, anchors, clock).Judge(reply, clock)
			t.Logf("ours %s, unbound %s, delv %q", ours.Security, unbound, delv)
			want := Bogus // unbound follows revoked keys, against RFC 5011 section 2.1. delv does not.
			if unbound == Secure && strings.Contains(delv, "fully validated") {
				want = Secure
			}
			if ours.Security != want {
				t.Errorf("ours is %+v, unbound's %s, delv's %q", ours, unbound, delv)
			}
		})
	}
}

package dnssec

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
			dir := t.TempDir()
			var anchors, delvAnchors strings.Builder
			delvAnchors.WriteString("trust-anchors {\n")
			for _, rr := range set {
				d := rr.(*dns.DS)
				fmt.Fprintln(&anchors, rr)
				fmt.Fprintf(&delvAnchors, "  %q static-ds %d %d %d \"%s\";\n", zone, d.KeyTag, d.Algorithm, d.DigestType, d.Digest)
			}
			delvAnchors.WriteString("};\n")
			at := named.Reserve(t)
			for file, content := range map[string]string{
				"ds": anchors.String(), "anchors": delvAnchors.String(),
				"unbound.conf": fmt.Sprintf("server:\n  interface: %s@%d\n  do-daemonize: no\n  use-syslog: no\n  chroot: \"\"\n  username: \"\"\n  pidfile: \"\"\n  directory: %q\n  num-threads: 1\n  do-ip6: no\n"+
					"  do-not-query-localhost: no\n  module-config: \"validator iterator\"\n  trust-anchor-file: \"ds\"\n  local-zone: \"test.\" nodefault\n  qname-minimisation: no\nstub-zone:\n  name: %q\n  stub-addr: %s@%d\n",
					at.Addr(), at.Port(), dir, zone, server.Addr.Addr(), server.Addr.Port()),
			} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			daemon.Start(t, dir, daemon.Find(t, "unbound", "unbound"), []string{"-c", filepath.Join(dir, "unbound.conf")}, at, nil)
			theirs := opinionOfUnbound(t, at.String(), zone)
			out, _ := exec.CommandContext(t.Context(), "delv", "-a", filepath.Join(dir, "anchors"), "@"+server.Addr.Addr().String(), "-p", fmt.Sprint(server.Addr.Port()), "+root="+zone, zone, "SOA").CombinedOutput()
			ours := Trust(zone, signed, set, Clock{Now: time.Now()}).Verdict()
			t.Logf("ours %s, unbound %s, delv %q", ours.Security, theirs, strings.SplitN(string(out), "\n", 2)[0])
			if ours.Security != theirs {
				t.Errorf("ours is %+v, unbound's %s", ours, theirs)
			}
		})
	}
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

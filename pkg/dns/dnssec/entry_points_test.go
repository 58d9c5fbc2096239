package dnssec

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// TestEntryPoints: DS records with any supported digest name the same key, and those of other keys stay what they are.
func TestEntryPoints(t *testing.T) {
	key := func() *dns.DNSKEY {
		k := &dns.DNSKEY{Hdr: dns.RR_Header{Name: "a.test.", Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET}, Flags: 257, Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
		if _, err := k.Generate(256); err != nil {
			t.Fatal(err)
		}
		return k
	}
	data := func(k *dns.DNSKEY, digest uint8) string {
		_, _, rdata := rrset.FromRR(k.ToDS(digest))
		return rdata
	}
	a, b, other := key(), key(), key()
	points := EntryPointsOf([]*dns.DNSKEY{a, b})
	for _, digest := range []uint8{dns.SHA1, dns.SHA256, dns.SHA384} {
		for _, k := range []*dns.DNSKEY{a, b} {
			if got, want := points.Name(data(k, digest)), data(k, dns.SHA256); got != want {
				t.Errorf("digest %d: the name is %q, want %q", digest, got, want)
			}
		}
		if ds := data(other, digest); points.Name(ds) != ds {
			t.Errorf("digest %d: a record of another key is %q", digest, points.Name(ds))
		}
	}
}

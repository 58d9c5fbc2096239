package wire

import (
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// FromSOA turns an SOA record as it came from the network into our form, with canonical names.
func FromSOA(rr *dns.SOA) rrset.SOA {
	return rrset.SOA{
		MName: canonical(rr.Ns), RName: canonical(rr.Mbox),
		Serial: rr.Serial, Refresh: rr.Refresh, Retry: rr.Retry, Expire: rr.Expire, Minimum: rr.Minttl,
		TTL: min(rr.Hdr.Ttl, maxTTL),
	}
}

// ToSOA makes the SOA record of a zone.
func ToSOA(zone string, s rrset.SOA) *dns.SOA {
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: s.TTL},
		Ns:  s.MName, Mbox: s.RName,
		Serial: s.Serial, Refresh: s.Refresh, Retry: s.Retry, Expire: s.Expire, Minttl: s.Minimum,
	}
}

const maxTTL = 1<<31 - 1 // RFC 2181 section 8

// canonical falls back to plain lower case for names that rrset refuses; what a server sent is shown as it is.
func canonical(name string) string {
	if c, err := rrset.CanonicalName(name); err == nil {
		return c
	}
	return dns.CanonicalName(name)
}

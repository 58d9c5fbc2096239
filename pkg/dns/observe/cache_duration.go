package observe

import (
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// CacheDuration is how long a resolver caches what a server with the content answers at a name and type: data for its TTL, an alias for
// that of the alias, a negative answer for the negative TTL (RFC 2308 section 5), or the answer of a wildcard or a delegation. If the
// content alone does not determine which of them it is, the longest counts.
func (m *Mirror) CacheDuration(k rrset.Key) time.Duration {
	if s, ok := m.Get(k); ok {
		return seconds(s.TTL)
	}
	if alias, ok := m.Get(rrset.Key{Name: k.Name, Type: dns.TypeCNAME}); ok {
		return seconds(alias.TTL)
	}
	kept, exists := min(m.SOA.Minimum, m.SOA.TTL), false
	for s := range m.At(k.Name) {
		exists = true
		if k.Type == dns.TypeCNAME { // An alias answers queries for all types.
			kept = max(kept, s.TTL)
		}
	}
	for name := range rrset.NamesBelow(m.Zone, k.Name) {
		if cut, ok := m.Get(rrset.Key{Name: name, Type: dns.TypeNS}); ok {
			kept = max(kept, cut.TTL)
		}
		if !exists {
			kept = max(kept, wildcardTTL(m, rrset.ParentName(name), k.Type))
			exists = hasName(m, rrset.ParentName(name)) // The closest encloser: no wildcard further up counts (RFC 4592 section 2.2.1).
		}
	}
	return seconds(kept)
}

// wildcardTTL is the longest TTL of what the wildcard below a name answers to queries for a type; 0 if there is none.
func wildcardTTL(m *Mirror, above string, rrtype uint16) uint32 {
	var ttl uint32
	for s := range m.At("*." + above) {
		if s.Type == rrtype || s.Type == dns.TypeCNAME || rrtype == dns.TypeCNAME {
			ttl = max(ttl, s.TTL)
		}
	}
	return ttl
}

func hasName(m *Mirror, name string) bool {
	for range m.At(name) {
		return true
	}
	return false
}

func seconds(n uint32) time.Duration { return time.Duration(n) * time.Second }

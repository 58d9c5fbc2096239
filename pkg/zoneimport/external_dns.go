package zoneimport

import (
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// ownershipMark is how external-dns begins a text that says who owns a name.
const ownershipMark = `"heritage=external-dns,`

// ownedTypes are the types as external-dns writes them before a name.
var ownedTypes = map[string]uint16{
	"a": dns.TypeA, "aaaa": dns.TypeAAAA, "cname": dns.TypeCNAME, "ns": dns.TypeNS, "mx": dns.TypeMX, "srv": dns.TypeSRV, "ptr": dns.TypePTR, "naptr": dns.TypeNAPTR,
	"txt": dns.TypeTXT,
}

// withoutExternalDNS takes out of a zone what external-dns has published, and the TXT records by which it knows that. prefix is its flag
// --txt-prefix. It returns how many RRsets and how many TXT records these are.
func (c *zoneContent) withoutExternalDNS(prefix string) (published, ownership int) {
	known := map[rrset.Key]bool{}
	for _, set := range c.sets {
		known[set.Key] = true
	}
	owned := map[rrset.Key]bool{}
	for i := range c.sets {
		set := &c.sets[i]
		rest := slices.DeleteFunc(slices.Clone(set.Rdata), isOwnership)
		if set.Type != dns.TypeTXT || len(rest) == len(set.Rdata) {
			continue
		}
		for _, key := range ownedKeys(set.Name, strings.ToLower(prefix), known) {
			owned[key] = true
		}
		ownership += len(set.Rdata) - len(rest)
		set.Rdata = rest
	}
	c.sets = slices.DeleteFunc(c.sets, func(set placedSet) bool {
		if owned[set.Key] && len(set.Rdata) > 0 {
			published++
		}
		return owned[set.Key] || len(set.Rdata) == 0
	})
	return published, ownership
}

func isOwnership(text string) bool { return strings.HasPrefix(text, ownershipMark) }

// ownedKeys returns the RRsets that a TXT record at a name owns: of the type that the name begins with ("a-www"), or, as releases before
// external-dns 0.12 wrote it, all at the name itself.
func ownedKeys(name, prefix string, known map[rrset.Key]bool) (keys []rrset.Key) {
	name = strings.TrimPrefix(name, prefix)
	if mark, host, found := strings.Cut(name, "-"); found {
		if key := (rrset.Key{Name: host, Type: ownedTypes[mark]}); known[key] {
			return []rrset.Key{key}
		}
	}
	for mark, rrtype := range ownedTypes {
		if key := (rrset.Key{Name: name, Type: rrtype}); known[key] && mark != "txt" {
			keys = append(keys, key)
		}
	}
	return keys
}

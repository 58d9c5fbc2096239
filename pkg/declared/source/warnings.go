package source

import (
	"fmt"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// ttlWarning says why the TTL of a declaration is not served, "" when it is.
func (d *groupDecision) ttlWarning(c *declarationCandidate) string {
	by, mixed := d.lowest[c.Key]
	if !mixed {
		return ""
	}
	served := findRRset(d.sets[c.at], c.Key.Type).TTL
	if c.TTL == served {
		return ""
	}
	return fmt.Sprintf("TTL %d is served instead of %d: %s declares it for the same name and type, which have one TTL (RFC 2181 section 5.2)",
		served, c.TTL, by.readBy(c.Ref.Namespace))
}

// warnOfHosts stores the declarations that name hosts with their warnings, now that all hosts are known.
func (r *zoneRevision) warnOfHosts() {
	for _, v := range r.naming {
		var said []string
		for _, rdata := range v.Rdata {
			host, _ := rrset.HostOf(v.Key.Type, rdata)
			if text := r.hostWarning(v.Key, host); !slices.Contains(said, text) {
				said = append(said, text)
				v.addNote(text)
			}
		}
		r.storeDeclaration(v)
	}
}

func (r *zoneRevision) hostWarning(k rrset.Key, host string) string {
	_, text := zoneContent{r.Name, func(key rrset.Key) bool { _, ok := r.sets.Get(key); return ok }}.warnOfHost(k, host)
	return text
}

// WarnOfHost warns when an RRset of the zone names a host inside the zone that cannot be reached: it has no address, or is an alias where DNS
// wants the host itself (RFC 2181 section 10.3, RFC 2782). The text is empty if there is nothing to warn of.
func (z *Zone) WarnOfHost(k rrset.Key, host string) (alias bool, text string) {
	return zoneContent{z.Name, func(key rrset.Key) bool { _, ok := z.RRsets.Get(key); return ok }}.warnOfHost(k, host)
}

// zoneContent is what a zone has.
type zoneContent struct {
	apex string
	has  func(rrset.Key) bool
}

func (z zoneContent) warnOfHost(k rrset.Key, host string) (alias bool, text string) {
	switch {
	case host == "." || !rrset.IsSubdomain(host, z.apex) || z.hasAddress(host):
		return false, ""
	case z.has(rrset.Key{Name: host, Type: dns.TypeCNAME}):
		return true, fmt.Sprintf("%s is an alias, and %s records must name the host itself (RFC 2181 section 10.3)", host, dns.Type(k.Type))
	case k.Type == dns.TypeNS && k.Name != z.apex && rrset.IsSubdomain(host, k.Name):
		return false, fmt.Sprintf("%s is inside what it serves and has no address here, so nobody can find it; publish one with an ARecord or AAAARecord", host)
	case z.isDelegated(host) || z.hasWildcard(host):
		return false, ""
	}
	return false, fmt.Sprintf("%s has no address in this zone; publish one with an ARecord or AAAARecord", host)
}

func (z zoneContent) hasAddress(name string) bool {
	return z.has(rrset.Key{Name: name, Type: dns.TypeA}) || z.has(rrset.Key{Name: name, Type: dns.TypeAAAA})
}

func (z zoneContent) isDelegated(name string) bool {
	for at := range rrset.NamesBelow(z.apex, name) {
		if z.has(rrset.Key{Name: at, Type: dns.TypeNS}) {
			return true
		}
	}
	return false
}

// hasWildcard reports whether a wildcard above a name may give it an address.
func (z zoneContent) hasWildcard(name string) bool {
	for at := range rrset.NamesBelow(z.apex, name) {
		if wild := "*." + rrset.ParentName(at); z.hasAddress(wild) || z.has(rrset.Key{Name: wild, Type: dns.TypeCNAME}) {
			return true
		}
	}
	return false
}

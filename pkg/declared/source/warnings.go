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

// hostWarning warns when a record names a host inside the zone that cannot be reached: it has no address, or is an alias where DNS wants
// the host itself (RFC 2181 section 10.3).
func (r *zoneRevision) hostWarning(k rrset.Key, host string) string {
	switch {
	case host == "." || !rrset.IsSubdomain(host, r.Name) || r.hasAddress(host):
		return ""
	case r.hasRRset(host, dns.TypeCNAME):
		return fmt.Sprintf("%s is an alias, and %s records must name the host itself (RFC 2181 section 10.3)", host, dns.Type(k.Type))
	case k.Type == dns.TypeNS && k.Name != r.Name && rrset.IsSubdomain(host, k.Name):
		return fmt.Sprintf("%s is inside what it serves and has no address here, so nobody can find it; publish one with an ARecord or AAAARecord", host)
	case r.isDelegated(host) || r.hasWildcard(host):
		return ""
	}
	return fmt.Sprintf("%s has no address in this zone; publish one with an ARecord or AAAARecord", host)
}

func (r *zoneRevision) hasRRset(name string, rrtype uint16) bool {
	_, ok := r.sets.Get(rrset.Key{Name: name, Type: rrtype})
	return ok
}

func (r *zoneRevision) hasAddress(name string) bool {
	return r.hasRRset(name, dns.TypeA) || r.hasRRset(name, dns.TypeAAAA)
}

func (r *zoneRevision) isDelegated(name string) bool {
	for cut := range r.tree.cutsAbove(r.tree.nodeAt(name)) {
		if r.hasRRset(cut.name, dns.TypeNS) {
			return true
		}
	}
	return false
}

// hasWildcard reports whether a wildcard above a name may give it an address.
func (r *zoneRevision) hasWildcard(name string) bool {
	for name != r.Name {
		name = rrset.ParentName(name)
		if wild := "*." + name; r.hasAddress(wild) || r.hasRRset(wild, dns.TypeCNAME) {
			return true
		}
	}
	return false
}

package source

import (
	"fmt"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// note adds the remarks that depend on the whole zone.
func (b *builder) note() {
	for i := range b.zone.Declarations {
		d := &b.zone.Declarations[i]
		if !d.Accepted {
			continue
		}
		for _, remark := range [...]string{b.ttlNote(d), b.hostNote(d)} {
			if remark != "" && d.Note != "" {
				d.Note += "; "
			}
			d.Note += remark
		}
	}
}

// ttlNote tells an object whose TTL is not served why.
func (b *builder) ttlNote(d *Declaration) string {
	if len(b.lowest) == 0 {
		return ""
	}
	by, mixed := b.lowest[d.Key]
	served := b.zone.RRsets[d.Key].TTL
	if !mixed || d.TTL == served {
		return ""
	}
	return fmt.Sprintf("TTL %d is served instead of %d: %s declares it for the same name and type, which have one TTL (RFC 2181 section 5.2)",
		served, d.TTL, by)
}

// hostNote tells when a record names a host inside the zone that cannot be reached: it has no address, or is an alias
// where DNS wants the host itself (RFC 2181 section 10.3).
func (b *builder) hostNote(d *Declaration) string {
	if d.Key.Type != dns.TypeMX && d.Key.Type != dns.TypeSRV && d.Key.Type != dns.TypeNS {
		return ""
	}
	host := d.Rdata[0][strings.LastIndexByte(d.Rdata[0], ' ')+1:]
	switch {
	case host == "." || !rrset.IsSubdomain(host, b.name) || b.hasAddress(host):
		return ""
	case b.has(host, dns.TypeCNAME):
		return fmt.Sprintf("%s is an alias, and %s records must name the host itself (RFC 2181 section 10.3)", host, dns.Type(d.Key.Type))
	case d.Key.Type == dns.TypeNS && d.Key.Name != b.name && rrset.IsSubdomain(host, d.Key.Name):
		return fmt.Sprintf("%s is inside what it serves and has no address here, so nobody can find it; publish one with an ARecord or AAAARecord", host)
	case b.isDelegated(host) || b.hasWildcard(host):
		return ""
	}
	return fmt.Sprintf("%s has no address in this zone; publish one with an ARecord or AAAARecord", host)
}

func (b *builder) has(name string, rrtype uint16) bool {
	_, ok := b.zone.RRsets[rrset.Key{Name: name, Type: rrtype}]
	return ok
}

func (b *builder) hasAddress(name string) bool {
	return b.has(name, dns.TypeA) || b.has(name, dns.TypeAAAA)
}

func (b *builder) isDelegated(name string) bool {
	for c := range b.cutsAbove(rrset.Key{Name: name}) {
		if c.delegated != nil {
			return true
		}
	}
	return false
}

// hasWildcard tells whether any wildcard above a name may give it an address.
func (b *builder) hasWildcard(name string) bool {
	for name != b.name {
		name = rrset.Parent(name)
		if wild := "*." + name; b.hasAddress(wild) || b.has(wild, dns.TypeCNAME) {
			return true
		}
	}
	return false
}

package source

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// conflicts decides between declarations that exclude each other. It knows, before the first one is admitted, at which
// names there is anything to decide, so that all other names cost no more than a look-up.
type conflicts struct {
	// aliases are the names that any CNAME is declared for, with the first declaration admitted there.
	aliases map[string]*claim
	// hosts are the name servers of the zone itself, with the object that named each. Their names take no CNAME (RFC
	// 2181 section 10.3): BIND would not load the zone.
	hosts map[string]Ref
	// cuts are the names below the apex that any NS is declared for.
	cuts map[string]*cut
	// glue are the names of all declared name servers, whose addresses may stand below a delegation.
	glue map[string]struct{}
}

// claim is a declaration that was admitted.
type claim struct {
	key   rrset.Key
	rdata []string
	by    Ref
}

// cut is a name that may become a delegation.
type cut struct {
	// delegated is the first NS admitted here, data the first that a delegation would hide. Only one of them is set.
	delegated, data *claim
}

// prepare looks for the names where declarations may exclude each other.
func (b *builder) prepare() {
	b.conflicts = conflicts{
		aliases: map[string]*claim{}, hosts: map[string]Ref{}, cuts: map[string]*cut{}, glue: map[string]struct{}{},
	}
	for _, server := range b.servers {
		b.hosts[server], b.glue[server] = b.zone.Ref, struct{}{}
	}
	for i := range b.zone.Declarations {
		d := &b.zone.Declarations[i]
		switch {
		case !d.Accepted:
		case d.Key.Type == dns.TypeCNAME:
			b.aliases[d.Key.Name] = nil
		case d.Key.Type == dns.TypeNS:
			b.glue[d.Rdata[0]] = struct{}{}
			if d.Key.Name != b.name {
				b.cuts[d.Key.Name] = &cut{}
			}
		}
	}
}

// admit makes a declaration part of the zone, unless an older one excludes it.
func (b *builder) admit(d *Declaration) {
	if why := cmp.Or(b.aliasConflict(d), b.hostConflict(d), b.cutConflict(d), b.limit(d)); why != "" {
		d.refuse(status.Conflict, why)
		return
	}
	b.claim(d)
	b.add(d.Key, d.TTL, d.Rdata, d.Ref)
}

// claim notes what later declarations have to respect.
func (b *builder) claim(d *Declaration) {
	if first, contested := b.aliases[d.Key.Name]; contested && first == nil {
		b.aliases[d.Key.Name] = claimOf(d)
	}
	if d.Key.Type == dns.TypeNS && d.Key.Name == b.name {
		if _, known := b.hosts[d.Rdata[0]]; !known {
			b.hosts[d.Rdata[0]] = d.Ref
		}
	}
	for c, own := range b.cutsAbove(d.Key) {
		switch {
		case own && c.delegated == nil:
			c.delegated = claimOf(d)
		case !own && c.data == nil && !b.isGlue(d.Key):
			c.data = claimOf(d)
		}
	}
}

func claimOf(d *Declaration) *claim { return &claim{key: d.Key, rdata: d.Rdata, by: d.Ref} }

// aliasConflict keeps a CNAME apart from all other data of its name (RFC 1034 section 3.6.2, RFC 2181 section 10.1).
func (b *builder) aliasConflict(d *Declaration) string {
	first := b.aliases[d.Key.Name]
	cname := d.Key.Type == dns.TypeCNAME
	switch {
	case first == nil:
		return ""
	case cname && first.key.Type == dns.TypeCNAME:
		if slices.Equal(first.rdata, d.Rdata) {
			return ""
		}
		return fmt.Sprintf("%s is already an alias of %s, declared by %s, which is older; a name has one CNAME (RFC 2181 section 10.1)",
			d.Key.Name, first.rdata[0], first.by)
	case cname:
		return fmt.Sprintf("%s already has %s data, declared by %s, which is older; a CNAME stands alone at its name (RFC 1034 section 3.6.2)",
			d.Key.Name, dns.Type(first.key.Type), first.by)
	case first.key.Type == dns.TypeCNAME:
		return fmt.Sprintf("%s is an alias, declared by %s, which is older; a name with a CNAME has no other data (RFC 1034 section 3.6.2)",
			d.Key.Name, first.by)
	}
	return ""
}

// hostConflict keeps the names of the zone's own name servers free of CNAMEs.
func (b *builder) hostConflict(d *Declaration) string {
	switch {
	case d.Key.Type == dns.TypeCNAME:
		if by, ok := b.hosts[d.Key.Name]; ok {
			return fmt.Sprintf("%s is a name server of this zone, declared by %s; its name takes addresses, not a CNAME (RFC 2181 section 10.3)",
				d.Key.Name, by)
		}
	case d.Key.Type == dns.TypeNS && d.Key.Name == b.name:
		if first := b.aliases[d.Rdata[0]]; first != nil && first.key.Type == dns.TypeCNAME {
			return fmt.Sprintf("spec.nameserver: %s is an alias, declared by %s, which is older; a name server's name takes addresses, not a CNAME (RFC 2181 section 10.3)",
				d.Rdata[0], first.by)
		}
	}
	return ""
}

// cutConflict keeps data out of what is delegated to other servers (RFC 1034 section 4.2.1): BIND would accept it and
// never answer with it.
func (b *builder) cutConflict(d *Declaration) string {
	for c, own := range b.cutsAbove(d.Key) {
		switch {
		case own && c.data != nil:
			return fmt.Sprintf("a delegation of %s would hide %s, declared by %s, which is older; remove that first",
				d.Key.Name, c.data.key, c.data.by)
		case !own && c.delegated != nil && !b.isGlue(d.Key):
			return fmt.Sprintf("%s is delegated to %s, declared by %s, which is older; declare %s in that zone",
				c.delegated.key.Name, c.delegated.rdata[0], c.delegated.by, d.Key.Name)
		}
	}
	return ""
}

// cutsAbove yields the possible delegations at and above a name, the nearest first; own is true when the key is itself
// the NS RRset of that delegation.
func (b *builder) cutsAbove(k rrset.Key) func(yield func(c *cut, own bool) bool) {
	return func(yield func(*cut, bool) bool) {
		if len(b.cuts) == 0 {
			return
		}
		for name := k.Name; name != b.name && name != ""; name = rrset.Parent(name) {
			if c, ok := b.cuts[name]; ok && !yield(c, name == k.Name && k.Type == dns.TypeNS) {
				return
			}
		}
	}
}

// isGlue tells whether the key holds addresses of a name server.
func (b *builder) isGlue(k rrset.Key) bool {
	_, named := b.glue[k.Name]
	return named && (k.Type == dns.TypeA || k.Type == dns.TypeAAAA)
}

// limit keeps an RRset within what BIND serves and an answer can hold.
func (b *builder) limit(d *Declaration) string {
	set, exists := b.zone.RRsets[d.Key]
	if !exists {
		return ""
	}
	united := rrset.New(d.Key, 0, slices.Concat(set.Rdata, d.Rdata)...).Rdata
	switch {
	case len(united) > maxRecords:
		return fmt.Sprintf("%s would have %d values; BIND serves at most %d for one name and type, and older objects declare %d",
			d.Key, len(united), maxRecords, len(set.Rdata))
	case sizeOf(united) > maxRRsetSize:
		return fmt.Sprintf("%s would take %d bytes; at most %d fit into an answer, and older objects declare %d",
			d.Key, sizeOf(united), maxRRsetSize, sizeOf(set.Rdata))
	}
	return ""
}

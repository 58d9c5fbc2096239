package source

import (
	"fmt"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// conflicts is what later declarations of related names have to respect.
type conflicts struct {
	// first is the first declaration admitted at a name.
	first map[*node]*claim
	// hosts are the name servers of the zone itself, with the object that named each. Their names take no CNAME (RFC
	// 2181 section 10.3): BIND would not load the zone.
	hosts map[*node]Ref
	// cuts are the names below the apex that any NS is declared for.
	cuts map[*node]*cut
}

func newConflicts() conflicts {
	return conflicts{first: map[*node]*claim{}, hosts: map[*node]Ref{}, cuts: map[*node]*cut{}}
}

// claim is a declaration that was admitted.
type claim struct {
	key   rrset.Key
	rdata []string
	by    Ref
	index int
}

// cut is a name that may become a delegation.
type cut struct {
	// delegated is the first NS admitted here, data the first that a delegation would hide. Only one of them is set.
	delegated, data *claim
}

// against is how a message to a declaration names the one that came before it.
func (l *claim) against(c *candidate) string {
	if l.by == c.Ref {
		return fmt.Sprintf("declared by spec.endpoints[%d], which comes first", l.index)
	}
	return fmt.Sprintf("declared by %s, which is older", l.by.readBy(c.Ref.Namespace))
}

// claim notes what later declarations have to respect.
func (d *decision) claim(c *candidate) {
	l := &claim{key: c.Key, rdata: c.Rdata, by: c.Ref, index: c.index}
	if d.first[c.at] == nil {
		d.first[c.at] = l
	}
	if c.Key.Type == dns.TypeNS && c.at == d.names.apex {
		for host := range d.names.hostsOf(c.Declaration) {
			if _, known := d.hosts[host]; !known {
				d.hosts[host] = c.Ref
			}
		}
	}
	for cut, own := range d.cutsAbove(c) {
		switch {
		case own && cut.delegated == nil:
			cut.delegated = l
		case !own && cut.data == nil && !isGlue(c):
			cut.data = l
		}
	}
}

// aliasConflict keeps a CNAME apart from all other data of its name (RFC 1034 section 3.6.2, RFC 2181 section 10.1).
func (d *decision) aliasConflict(c *candidate) string {
	first := d.first[c.at]
	cname := c.Key.Type == dns.TypeCNAME
	switch {
	case first == nil:
		return ""
	case cname && first.key.Type == dns.TypeCNAME:
		if slices.Equal(first.rdata, c.Rdata) {
			return ""
		}
		return fmt.Sprintf("%s is already an alias of %s, %s; a name has one CNAME (RFC 2181 section 10.1)",
			c.Key.Name, first.rdata[0], first.against(c))
	case cname:
		return fmt.Sprintf("%s already has %s data, %s; a CNAME stands alone at its name (RFC 1034 section 3.6.2)",
			c.Key.Name, dns.Type(first.key.Type), first.against(c))
	case first.key.Type == dns.TypeCNAME:
		return fmt.Sprintf("%s is an alias, %s; a name with a CNAME has no other data (RFC 1034 section 3.6.2)",
			c.Key.Name, first.against(c))
	}
	return ""
}

// hostConflict keeps the names of the zone's own name servers free of CNAMEs.
func (d *decision) hostConflict(c *candidate) string {
	switch {
	case c.Key.Type == dns.TypeCNAME:
		if by, ok := d.hosts[c.at]; ok {
			return fmt.Sprintf("%s is a name server of this zone, declared by %s; its name takes addresses, not a CNAME (RFC 2181 section 10.3)",
				c.Key.Name, by.readBy(c.Ref.Namespace))
		}
	case c.Key.Type == dns.TypeNS && c.at == d.names.apex:
		for host := range d.names.hostsOf(c.Declaration) {
			if first := d.first[host]; first != nil && first.key.Type == dns.TypeCNAME {
				return fmt.Sprintf("%s: %s is an alias, %s; a name server's name takes addresses, not a CNAME (RFC 2181 section 10.3)",
					fieldsOf(c.object).server, host.name, first.against(c))
			}
		}
	}
	return ""
}

// cutConflict keeps data out of what is delegated to other servers (RFC 1034 section 4.2.1): BIND would accept it and
// never answer with it.
func (d *decision) cutConflict(c *candidate) string {
	for cut, own := range d.cutsAbove(c) {
		switch {
		case own && cut.data != nil:
			return fmt.Sprintf("a delegation of %s would hide %s, %s; remove that first", c.Key.Name, cut.data.key, cut.data.against(c))
		case !own && cut.delegated != nil && !isGlue(c):
			return fmt.Sprintf("%s is delegated to %s, %s; declare %s in that zone",
				cut.delegated.key.Name, cut.delegated.rdata[0], cut.delegated.against(c), c.Key.Name)
		}
	}
	return ""
}

// cutsAbove yields the possible delegations at and above a candidate, the nearest first; own is true when it is itself an
// NS of that delegation.
func (d *decision) cutsAbove(c *candidate) func(yield func(at *cut, own bool) bool) {
	return func(yield func(*cut, bool) bool) {
		for n := range d.names.cutsAbove(c.at) {
			at := d.cuts[n]
			if at == nil {
				at = &cut{}
				d.cuts[n] = at
			}
			if !yield(at, n == c.at && c.Key.Type == dns.TypeNS) {
				return
			}
		}
	}
}

// isGlue tells whether a candidate holds addresses of a name server.
func isGlue(c *candidate) bool {
	return c.at.glue > 0 && (c.Key.Type == dns.TypeA || c.Key.Type == dns.TypeAAAA)
}

// limit keeps an RRset within what BIND serves and an answer can hold.
func (d *decision) limit(c *candidate) string {
	set := findSet(d.sets[c.at], c.Key.Type)
	if set == nil {
		return ""
	}
	united := rrset.New(c.Key, 0, slices.Concat(set.Rdata, c.Rdata)...).Rdata
	switch {
	case len(united) > maxRecords:
		return fmt.Sprintf("%s would have %d values; BIND serves at most %d for one name and type, and older declarations have %d",
			c.Key, len(united), maxRecords, len(set.Rdata))
	case sizeOf(united) > maxRRsetSize:
		return fmt.Sprintf("%s would take %d bytes; at most %d fit into an answer, and older declarations take %d",
			c.Key, sizeOf(united), maxRRsetSize, sizeOf(set.Rdata))
	}
	return ""
}

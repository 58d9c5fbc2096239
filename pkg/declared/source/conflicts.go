package source

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// conflictState is what later declarations of related names have to respect.
type conflictState struct {
	// first is the first declaration admitted at a name.
	first map[*nameNode]*acceptedValues
	// hosts are the name servers of the zone itself, with the object that named each. Their names take no CNAME (RFC
	// 2181 section 10.3): BIND would not load the zone.
	hosts map[*nameNode]*Ref
	// cuts are the names that any DNAME, or below the apex any NS, is declared for.
	cuts map[*nameNode]*delegationPoint
}

func newConflictState() conflictState {
	return conflictState{first: map[*nameNode]*acceptedValues{}, hosts: map[*nameNode]*Ref{}, cuts: map[*nameNode]*delegationPoint{}}
}

// acceptedValues is a declaration that was admitted.
type acceptedValues struct {
	key   rrset.Key
	rdata []string
	by    *Ref
	index int
	// own is true if the object is of the zone's namespace.
	own bool
}

// delegationPoint is a name that may become a delegation, or redirect the names below it.
type delegationPoint struct {
	// delegated is the first NS admitted here, data the first that a delegation would hide. Only one of them is set.
	delegated, data *acceptedValues
	// redirected is the first DNAME admitted here, below the first data of a name below. Only one of them is set.
	redirected, below *acceptedValues
}

// describeFor is how a message to a declaration names the one that came before it.
func (l *acceptedValues) describeFor(c *declarationCandidate) string {
	if l.by.isSame(c.Ref) {
		return fmt.Sprintf("declared by spec.endpoints[%d], which comes first", l.index)
	}
	return "declared by " + l.by.beforeOf(c, l.own)
}

// beforeOf names an object that comes before a candidate. It is own if it is of the zone's namespace.
func (r *Ref) beforeOf(c *declarationCandidate, own bool) string {
	if own && r.Namespace != c.Ref.Namespace {
		return "an object of the zone's namespace, which comes first"
	}
	return r.readBy(c.Ref.Namespace) + ", which is older"
}

// noteAccepted notes what later declarations have to respect.
func (d *groupDecision) noteAccepted(c *declarationCandidate) {
	l := &acceptedValues{key: c.Key, rdata: c.Rdata, by: c.Ref, index: c.index, own: d.isOwn(c.object)}
	if d.first[c.at] == nil {
		d.first[c.at] = l
	}
	if c.Key.Type == dns.TypeNS && c.at == d.tree.apex {
		for host := range d.tree.hostsOf(c.Declaration) {
			if _, known := d.hosts[host]; !known {
				d.hosts[host] = c.Ref
			}
		}
	}
	for n := range d.tree.cutsAbove(c.at) {
		cut := d.cutAt(n)
		switch {
		case d.delegates(n, c):
			cut.delegated = cmp.Or(cut.delegated, l)
			continue
		case n != c.at:
			cut.below = cmp.Or(cut.below, l)
		case c.Key.Type == dns.TypeDNAME:
			cut.redirected = cmp.Or(cut.redirected, l)
		}
		if !isGlue(c) && !isParentData(n, c) {
			cut.data = cmp.Or(cut.data, l)
		}
	}
}

// aliasConflict keeps a CNAME apart from all other data of its name (RFC 1034 section 3.6.2, RFC 2181 section 10.1).
func (d *groupDecision) aliasConflict(c *declarationCandidate) string {
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
			c.Key.Name, first.rdata[0], first.describeFor(c))
	case cname:
		return fmt.Sprintf("%s already has %s data, %s; a CNAME stands alone at its name (RFC 1034 section 3.6.2)",
			c.Key.Name, dns.Type(first.key.Type), first.describeFor(c))
	case first.key.Type == dns.TypeCNAME:
		return fmt.Sprintf("%s is an alias, %s; a name with a CNAME has no other data (RFC 1034 section 3.6.2)",
			c.Key.Name, first.describeFor(c))
	}
	return ""
}

// hostConflict keeps the names of the zone's own name servers free of CNAMEs.
func (d *groupDecision) hostConflict(c *declarationCandidate) string {
	switch {
	case c.Key.Type == dns.TypeCNAME:
		if by, ok := d.hosts[c.at]; ok {
			return fmt.Sprintf("%s is a name server of this zone, declared by %s; its name takes addresses, not a CNAME (RFC 2181 section 10.3)",
				c.Key.Name, by.readBy(c.Ref.Namespace))
		}
	case c.Key.Type == dns.TypeNS && c.at == d.tree.apex:
		for host := range d.tree.hostsOf(c.Declaration) {
			if first := d.first[host]; first != nil && first.key.Type == dns.TypeCNAME {
				return fmt.Sprintf("%s: %s is an alias, %s; a name server's name takes addresses, not a CNAME (RFC 2181 section 10.3)",
					declaration.ValueField(c.object), host.name, first.describeFor(c))
			}
		}
	}
	return ""
}

// cutConflict keeps data out of what is delegated to other servers (RFC 1034 section 4.2.1): BIND would accept it and
// never answer with it.
func (d *groupDecision) cutConflict(c *declarationCandidate) string {
	for n := range d.tree.cutsAbove(c.at) {
		cut, own := d.cutAt(n), d.delegates(n, c)
		switch {
		case own && cut.data != nil:
			return fmt.Sprintf("a delegation of %s would hide %s, %s; remove that first", c.Key.Name, cut.data.key, cut.data.describeFor(c))
		case n == c.at && c.Key.Type == dns.TypeDNAME && cut.below != nil:
			return fmt.Sprintf("a DNAME at %s would hide %s, %s; remove that first", c.Key.Name, cut.below.key, cut.below.describeFor(c))
		case n != c.at && cut.redirected != nil:
			return fmt.Sprintf("names below %s are redirected to %s, %s (RFC 6672 section 2.4)",
				cut.redirected.key.Name, cut.redirected.rdata[0], cut.redirected.describeFor(c))
		case !own && cut.delegated != nil && !isGlue(c) && !isParentData(n, c):
			return fmt.Sprintf("%s is delegated to %s, %s; declare %s in that zone",
				cut.delegated.key.Name, cut.delegated.rdata[0], cut.delegated.describeFor(c), c.Key.Name)
		}
	}
	return ""
}

// cutAt finds or creates what is known of a possible delegation or redirection.
func (d *groupDecision) cutAt(n *nameNode) *delegationPoint {
	at := d.cuts[n]
	if at == nil {
		at = &delegationPoint{}
		d.cuts[n] = at
	}
	return at
}

// delegates reports whether a candidate is itself an NS of the delegation at a name.
func (d *groupDecision) delegates(n *nameNode, c *declarationCandidate) bool {
	return n == c.at && n != d.tree.apex && c.Key.Type == dns.TypeNS
}

// isParentData reports whether a candidate belongs beside the NS of the delegation at a name (RFC 4035 section 2.4).
func isParentData(n *nameNode, c *declarationCandidate) bool {
	return n == c.at && c.Key.Type == dns.TypeDS
}

// singleConflict keeps a name to one value of a type that has no more.
func (d *groupDecision) singleConflict(c *declarationCandidate) string {
	set := findRRset(d.sets[c.at], c.Key.Type)
	if rrset.SingleRule(c.Key.Type) == "" || set == nil || slices.Equal(set.Rdata, c.Rdata) {
		return ""
	}
	return fmt.Sprintf("%s already has %s, declared by %s; a name has one %s (%s)",
		c.Key, set.Rdata[0], set.Owners[0][0].beforeOf(c, set.Owners[0][0].Namespace == d.ref.Namespace), rrset.TypeName(c.Key.Type), rrset.SingleRule(c.Key.Type))
}

// orphanConflict keeps back a DS without the NS of its delegation among the RRsets of its name: BIND drops it.
func orphanConflict(k rrset.Key, sets []RRset) string {
	if k.Type != dns.TypeDS || findRRset(sets, dns.TypeNS) != nil {
		return ""
	}
	return fmt.Sprintf("%s is not delegated: a DS stands beside the NS of a delegation (RFC 4035 section 2.4); declare an NSRecord of that name", k.Name)
}

func isGlue(c *declarationCandidate) bool {
	return c.at.glue > 0 && (c.Key.Type == dns.TypeA || c.Key.Type == dns.TypeAAAA)
}

// sizeConflict keeps an RRset within what an answer can hold.
func (d *groupDecision) sizeConflict(c *declarationCandidate) string {
	older, united := d.unite(c)
	size := rrset.Size(c.Key.Type, united)
	if len(older) == 0 || size <= rrset.MaxSize {
		return ""
	}
	return fmt.Sprintf("%s would take %d bytes; at most %d fit into an answer, and other declarations take %d",
		c.Key, size, rrset.MaxSize, rrset.Size(c.Key.Type, older))
}

// limitConflict keeps an RRset within what the zone's servers take.
func (d *groupDecision) limitConflict(c *declarationCandidate) string {
	older, united := d.unite(c)
	return d.opts.MaxRecords.Excess(c.Key, len(united), len(older), c.Ref.Namespace)
}

// unite returns the values that older declarations have of a candidate's RRset, and these with its own.
func (d *groupDecision) unite(c *declarationCandidate) (older, united []string) {
	set := findRRset(d.sets[c.at], c.Key.Type)
	if set == nil {
		return nil, c.Rdata
	}
	united = slices.Clip(set.Rdata)
	for _, value := range c.Rdata {
		if _, found := slices.BinarySearch(set.Rdata, value); !found {
			united = append(united, value)
		}
	}
	return set.Rdata, united
}

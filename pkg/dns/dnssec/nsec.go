package dnssec

import (
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// nsecs are verified NSEC records (RFC 4035 section 5.4).
type nsecs struct {
	zone  string
	spans []span
}

// span is an NSEC record: there is no name between the owner and the next one.
type span struct {
	owner, next string
	types       types
}

func (n *nsecs) add(rr *dns.NSEC, zone string) {
	n.zone = zone
	if next := canonical(rr.NextDomain); rrset.IsSubdomain(next, zone) {
		n.spans = append(n.spans, span{rr.Hdr.Name, next, rr.TypeBitMap})
	}
}

func (n nsecs) match(name string) (s span, ok bool) {
	for _, s := range n.spans {
		if s.owner == name {
			return s, true
		}
	}
	return span{}, false
}

// cover finds the record that proves that a name has no records. The name can be one without records above others: see isEmpty.
func (n nsecs) cover(name string) (s span, ok bool) {
	for _, s := range n.spans {
		before := rrset.CompareNames(s.owner, name) < 0 && (s.next == n.zone || rrset.CompareNames(name, s.next) < 0)
		if before && !(s.types.hides() && isBelow(name, s.owner)) {
			return s, true
		}
	}
	return span{}, false
}

// isEmpty is true if the covered name exists, because another is below it.
func (s span) isEmpty(name string) bool { return isBelow(s.next, name) }

// closestEncloser is the longest ancestor of a covered name that exists.
func (s span) closestEncloser(name string) string {
	a, b := commonAncestor(name, s.owner), commonAncestor(name, s.next)
	if len(a) > len(b) {
		return a
	}
	return b
}

func commonAncestor(name, other string) string {
	for !rrset.IsSubdomain(other, name) {
		name = rrset.ParentName(name)
	}
	return name
}

func (n nsecs) proveNoName(name string) (weak, failed *finding) {
	s, ok := n.cover(name)
	if !ok || s.isEmpty(name) {
		return nil, errNoProof("no NSEC record proves that %s does not exist", name)
	}
	wildcard := wildcardBelow(s.closestEncloser(name))
	if s, ok = n.cover(wildcard); !ok || s.isEmpty(wildcard) {
		return nil, errNoProof("no NSEC record proves that %s does not exist", wildcard)
	}
	return nil, nil
}

func (n nsecs) proveNoData(name string, rrtype uint16) (weak, failed *finding) {
	if s, ok := n.match(name); ok {
		if !s.types.deny(rrtype) {
			return nil, errNoProof("the NSEC record of %s does not deny %s", name, rrset.TypeName(rrtype))
		}
		return nil, nil
	}
	s, ok := n.cover(name)
	if ok && s.isEmpty(name) {
		return nil, nil
	}
	if ok {
		if s, ok := n.match(wildcardBelow(s.closestEncloser(name))); ok && s.types.deny(rrtype) {
			return nil, nil
		}
	}
	return nil, errNoProof("no NSEC record proves that %s has no %s", name, rrset.TypeName(rrtype))
}

func (n nsecs) proveNoDS(name string) (weak, failed *finding) {
	if s, ok := n.match(name); ok && s.types.isDelegation() && s.types.deny(dns.TypeDS) {
		return nil, nil
	}
	return nil, errNoProof("no NSEC record proves that the delegation of %s has no DS record", name)
}

func (n nsecs) proveExpansion(name string, labels int) (weak, failed *finding) {
	if s, ok := n.cover(name); ok && !s.isEmpty(name) && s.closestEncloser(name) == ancestor(name, labels) {
		return nil, nil
	}
	return nil, errNoProof("no NSEC record proves that %s does not exist beside the wildcard", name)
}

func wildcardBelow(name string) string {
	if name == "." {
		return "*."
	}
	return "*." + name
}

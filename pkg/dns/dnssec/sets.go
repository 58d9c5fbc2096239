package dnssec

import (
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// set is an RRset of a message as it was received, with its signatures. Owner names are canonical.
type set struct {
	rrset.Key
	records    []dns.RR
	signatures []*dns.RRSIG
	verified   bool
	// labels is the Labels field of the accepted signature.
	labels int
}

// isExpanded reports whether the RRset was made from a wildcard (RFC 4035 section 5.3.4).
func (s *set) isExpanded() bool { return s.labels < countLabels(s.Name) }

// cost is how often a verification counts.
func (s *set) cost() int { return 1 + len(s.records)/recordsPerVerification }

// sets are the RRsets of a section, in the order of the message.
type sets []*set

func (s sets) find(name string, rrtype uint16) *set {
	for _, one := range s {
		if one.Name == name && one.Type == rrtype {
			return one
		}
	}
	return nil
}

// groupRecords returns the RRsets of a section in a zone. Signatures without their RRset are left out, like all that a resolver does not
// believe this zone's server: other names, other classes.
func groupRecords(section []dns.RR, zone string) sets {
	var all sets
	byKey, signatures := map[rrset.Key]*set{}, map[rrset.Key][]*dns.RRSIG{}
	for _, rr := range section {
		name := canonical(rr.Header().Name)
		if rr.Header().Class != dns.ClassINET || !rrset.IsSubdomain(name, zone) {
			continue
		}
		rr = dns.Copy(rr)
		rr.Header().Name = name
		key := rrset.Key{Name: name, Type: rr.Header().Rrtype}
		if signature, ok := rr.(*dns.RRSIG); ok {
			key.Type = signature.TypeCovered
			signatures[key] = append(signatures[key], signature)
			continue
		}
		if byKey[key] == nil {
			byKey[key] = &set{Key: key}
			all = append(all, byKey[key])
		}
		byKey[key].records = append(byKey[key].records, rr)
	}
	for _, one := range all {
		one.signatures = signatures[one.Key]
	}
	return all
}

// canonical is a name of a message in the form that package rrset compares.
func canonical(name string) string {
	if c, err := rrset.CanonicalName(name); err == nil {
		return c
	}
	return dns.CanonicalName(name)
}

// countLabels counts the labels of a name without the root's and without a leading asterisk (RFC 4034 section 3.1.3).
func countLabels(name string) int {
	n := dns.CountLabel(name)
	if n > 0 && name[0] == '*' && (len(name) == 1 || name[1] == '.') {
		n--
	}
	return n
}

// ancestor is the name of the last n labels of a name.
func ancestor(name string, n int) string {
	for dns.CountLabel(name) > n {
		name = rrset.ParentName(name)
	}
	return name
}

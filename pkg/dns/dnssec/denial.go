package dnssec

import (
	"slices"

	"github.com/miekg/dns"
)

// denial is the proof that something does not exist. Its methods return a finding if the proof fails. A weak finding is about a proof
// that holds but does not exclude an unsigned delegation (opt-out), or that was not followed to its end.
type denial interface {
	// proveNoName: neither the name exists nor a wildcard that would match.
	proveNoName(name string) (weak, failed *finding)
	// proveNoData: the name exists, or a wildcard that matches it, and has no data of the type.
	proveNoData(name string, rrtype uint16) (weak, failed *finding)
	// proveNoDS: the name is a delegation without DS records.
	proveNoDS(name string) (weak, failed *finding)
	// proveExpansion: nothing is closer to the name than a wildcard below its last labels.
	proveExpansion(name string, labels int) (weak, failed *finding)
}

// collectProof reads the proof of the authority section.
func (j *judgement) collectProof() (denial, *finding) {
	var plain nsecs
	var hashed []*dns.NSEC3
	for _, s := range j.authority {
		if !s.verified || s.isExpanded() {
			continue // The owner of what was made from a wildcard is not the name that it is about.
		}
		for _, rr := range s.records {
			switch rr := rr.(type) {
			case *dns.NSEC:
				plain.add(rr, j.zone)
			case *dns.NSEC3:
				hashed = append(hashed, rr)
			}
		}
	}
	if len(plain.spans) == 0 && len(hashed) > 0 {
		return newNSEC3s(hashed, j.verifier)
	}
	return plain, nil
}

func errNoProof(format string, args ...any) *finding {
	return bogus(dns.ExtendedErrorCodeNSECMissing, format, args...)
}

// types is the bitmap of an NSEC or NSEC3 record: what types a name has.
type types []uint16

func (t types) has(rrtype uint16) bool { return slices.Contains(t, rrtype) }

// isDelegation is true for what the parent zone says about a zone cut.
func (t types) isDelegation() bool { return t.has(dns.TypeNS) && !t.has(dns.TypeSOA) }

// hides is true for names below which the zone has nothing (RFC 6840 section 4.1): nothing about them is proven here.
func (t types) hides() bool { return t.isDelegation() || t.has(dns.TypeDNAME) }

// deny reports whether the bitmap proves that the name has no data of a type. About a delegation the parent knows only DS, and about DS
// only the parent knows (RFC 6840 section 4.1). NSEC and KEY records can be beside a CNAME (RFC 4035 section 2.5). Every name with records
// has an answer for ANY.
func (t types) deny(rrtype uint16) bool {
	switch {
	case t.has(rrtype), t.has(dns.TypeCNAME) && rrtype != dns.TypeNSEC && rrtype != dns.TypeKEY:
		return false
	case rrtype == dns.TypeDS:
		return !t.has(dns.TypeSOA)
	case rrtype == dns.TypeANY:
		return len(t) == 0
	}
	return !t.isDelegation()
}

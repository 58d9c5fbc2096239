package rrset

import (
	"errors"
	"fmt"

	"github.com/miekg/dns"
)

// typeSigning is BIND's private type for the state of signing (its manual, "sig-signing-type").
const typeSigning = 65534

// IsServerMaintained is true for types whose RRsets servers maintain themselves: the SOA, and what signing adds to a zone. These are
// neither declared nor foreign data, and they may differ from server to server.
func IsServerMaintained(rrtype uint16) bool {
	switch rrtype {
	case dns.TypeSOA, dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeNSEC3PARAM, dns.TypeDNSKEY, dns.TypeCDS,
		dns.TypeCDNSKEY, typeSigning:
		return true
	}
	return false
}

// CheckDeclarable refuses types whose data cannot be declared: servers maintain it, or no zone holds it.
func CheckDeclarable(rrtype uint16) error {
	switch {
	case rrtype == dns.TypeSOA:
		return errors.New("the DNSZone declares the SOA record")
	case IsServerMaintained(rrtype), rrtype == dns.TypeSIG, rrtype == dns.TypeNXT:
		return fmt.Errorf("servers maintain %s records themselves when they sign a zone", TypeName(rrtype))
	case rrtype == dns.TypeNone, rrtype == dns.TypeOPT, rrtype >= firstMeta && rrtype <= lastMeta, rrtype == dns.TypeReserved:
		return fmt.Errorf("%s is no data of a zone (RFC 6895 section 3.1)", TypeName(rrtype))
	case rrtype == typeMD, rrtype == typeMF:
		return fmt.Errorf("%s is obsolete, and BIND refuses it; declare an MX record (RFC 1035 section 3.3.4)", TypeName(rrtype))
	}
	return nil
}

// DeclarableType is the number of a type whose data can be declared, 0 for any other.
func DeclarableType(mnemonic string) uint16 {
	if rrtype, known := ParseType(mnemonic); known && CheckDeclarable(rrtype) == nil {
		return rrtype
	}
	return 0
}

// Types of questions and of messages alone (RFC 6895 section 3.1).
const firstMeta, lastMeta = 128, 255

// typeMD and typeMF are the predecessors of MX.
const typeMD, typeMF = 3, 4

package rrset

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// furtherTypes are types of the IANA registry, and one of BIND's own, that miekg/dns has no name for.
var furtherTypes = map[uint16]string{
	11: "WKS", 22: "NSAP", 38: "A6", 40: "SINK", 66: "DSYNC", 67: "HHIT", 68: "BRID", 259: "DOA", 262: "WALLET", 263: "CLA", 264: "IPN", 65533: "KEYDATA",
}

var furtherNames = func() map[string]uint16 {
	names := make(map[string]uint16, len(furtherTypes))
	for t, name := range furtherTypes {
		names[name] = t
	}
	return names
}()

// TypeName is the mnemonic of an RR type in the IANA registry, or the form TYPE65280 (RFC 3597 section 5).
func TypeName(rrtype uint16) string {
	if name, ok := furtherTypes[rrtype]; ok {
		return name
	}
	return dns.Type(rrtype).String()
}

// ParseType reads what TypeName returns, in upper or lower case.
func ParseType(text string) (rrtype uint16, ok bool) {
	text = strings.ToUpper(text)
	if number, generic := strings.CutPrefix(text, "TYPE"); generic {
		n, err := strconv.ParseUint(number, 10, 16)
		return uint16(n & math.MaxUint16), err == nil
	}
	if rrtype, ok = furtherNames[text]; ok {
		return rrtype, true
	}
	rrtype, ok = dns.StringToType[text]
	return rrtype, ok
}

// SingleRule is the rule by which a name has at most one record of a type, "" for most types.
func SingleRule(rrtype uint16) string {
	switch rrtype {
	case dns.TypeCNAME:
		return "RFC 2181 section 10.1"
	case dns.TypeDNAME:
		return "RFC 6672 section 2.4"
	}
	return ""
}

// HostOf is the host that canonical rdata ends in, for the types that name one.
func HostOf(rrtype uint16, rdata string) (string, bool) {
	switch rrtype {
	case dns.TypeCNAME, dns.TypeNS, dns.TypePTR, dns.TypeDNAME:
		return rdata, true
	case dns.TypeMX, dns.TypeSRV:
		return rdata[strings.LastIndexByte(rdata, ' ')+1:], true
	}
	return "", false
}

// IsAlias is true for types that make names lead to others.
func IsAlias(rrtype uint16) bool { return rrtype == dns.TypeCNAME || rrtype == dns.TypeDNAME }

// placesOfTargets are the words that are targets, in data of types without rules of their own.
var placesOfTargets = map[uint16]int{
	dns.TypeSVCB: 1, dns.TypeHTTPS: 1, dns.TypeAFSDB: 1, dns.TypeKX: 1, dns.TypeLP: 1, dns.TypeRT: 1, dns.TypeNAPTR: 5,
}

// TargetOf is the name of a host or of a service in rdata, as it is written there, for the types that have one; "" if there is none.
func TargetOf(rrtype uint16, rdata string) string {
	if isRaw(rrtype, rdata) {
		return ""
	}
	if host, named := HostOf(rrtype, rdata); named {
		return host
	}
	place, named := placesOfTargets[rrtype]
	if words := parameterWords(rdata); named && place < len(words) {
		return unquoteName(words[place])
	}
	return ""
}

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

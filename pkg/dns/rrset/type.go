package rrset

import (
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

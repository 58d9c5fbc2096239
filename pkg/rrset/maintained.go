package rrset

import "github.com/miekg/dns"

// typeSigning is BIND's private type for the state of signing (its manual, "sig-signing-type").
const typeSigning = 65534

// Maintained tells whether each server keeps RRsets of a type itself: the SOA, and what signing a zone puts into it. They
// are neither declared nor anybody's foreign data, and they may differ from server to server.
func Maintained(rrtype uint16) bool {
	switch rrtype {
	case dns.TypeSOA, dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeNSEC3PARAM, dns.TypeDNSKEY, dns.TypeCDS,
		dns.TypeCDNSKEY, typeSigning:
		return true
	}
	return false
}

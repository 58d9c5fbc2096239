package rrset

import "github.com/miekg/dns"

// typeSigning is BIND's private type for the state of signing (its manual, "sig-signing-type").
const typeSigning = 65534

// IsServerMaintained reports whether servers maintain RRsets of a type themselves: the SOA, and what signing adds to a zone. These
// are neither declared nor foreign data, and they may differ from server to server.
func IsServerMaintained(rrtype uint16) bool {
	switch rrtype {
	case dns.TypeSOA, dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeNSEC3PARAM, dns.TypeDNSKEY, dns.TypeCDS,
		dns.TypeCDNSKEY, typeSigning:
		return true
	}
	return false
}

// Package rrset holds the unit that everything else plans, applies and compares: the RRset of RFC 2181 section 5,
// in one canonical form, so that two RRsets are equal exactly when == on their parts says so.
//
// It does no I/O and knows no Kubernetes object. Sources produce RRsets, plan compares them, wire and observe turn
// DNS messages into them, syncstatus shows them.
package rrset

import "slices"

// Key names an RRset inside a zone: owner name and type. The class is always IN.
type Key struct {
	// Name is the owner name: absolute, lower case, with the final dot (RFC 4343, RFC 4034 section 6.2).
	Name string
	// Type is the RR type as in the IANA registry, for example dns.TypeA.
	Type uint16
}

// RRset is the set of rdata at one owner name and type, with the one TTL that they share (RFC 2181 section 5.2).
type RRset struct {
	Key
	// TTL in seconds, 0 to 2^31-1 (RFC 2181 section 8).
	TTL uint32
	// Rdata in canonical presentation form, sorted, without duplicates.
	Rdata []string
}

// Equal tells whether both hold the same name, type, TTL and data.
func (s RRset) Equal(o RRset) bool {
	return s.Key == o.Key && s.TTL == o.TTL && slices.Equal(s.Rdata, o.Rdata)
}

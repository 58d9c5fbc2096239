// Package rrset defines the unit that is planned, applied and compared: the RRset of RFC 2181 section 5, in one canonical
// form, so that two RRsets are equal exactly when their parts are equal.
//
// It does no I/O and knows no Kubernetes object. Package source produces RRsets, plan compares them, wire and observe
// convert DNS messages to them, syncstatus shows them.
package rrset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Key identifies an RRset in a zone by owner name and type. The class is always IN.
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

// Equal reports whether both have the same name, type, TTL and data.
func (s RRset) Equal(o RRset) bool {
	return s.Key == o.Key && s.TTL == o.TTL && slices.Equal(s.Rdata, o.Rdata)
}

// New returns an RRset of canonical rdata in any order; duplicates are dropped. The arguments are not kept.
func New(key Key, ttl uint32, rdata ...string) RRset {
	set := RRset{Key: key, TTL: ttl, Rdata: slices.Clone(rdata)}
	if len(set.Rdata) > 1 {
		slices.Sort(set.Rdata)
		set.Rdata = slices.Compact(set.Rdata)
	}
	return set
}

// Compare orders keys by owner name (RFC 4034 section 6.1) and then by type.
func (k Key) Compare(o Key) int {
	return cmp.Or(CompareNames(k.Name, o.Name), cmp.Compare(k.Type, o.Type))
}

// String returns the key as people write it: "www.example.com. A".
func (k Key) String() string { return k.Name + " " + TypeName(k.Type) }

// String returns one line for people: "www.example.com. 300 A 192.0.2.1, 192.0.2.2".
func (s RRset) String() string {
	return fmt.Sprintf("%s %d %s %s", s.Name, s.TTL, dns.Type(s.Type), strings.Join(s.Rdata, ", "))
}

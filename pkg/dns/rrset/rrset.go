// Package rrset defines the unit that is planned, applied and compared: the RRset of RFC 2181 section 5, in one canonical
// form, so that two RRsets are equal exactly when their parts are equal.
//
// It does no I/O and knows no Kubernetes object. Package source produces RRsets, plan compares them, wire and observe
// convert DNS messages to them, syncstatus shows them.
package rrset

import (
	"cmp"
	"fmt"
	"maps"
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
	// Spelling is how names are spelled that have upper case; nil where none has. It is no part of what is compared (RFC 4343).
	Spelling *Spelling
}

// Spelling is how names of an RRset are spelled where that is not their canonical form.
type Spelling struct {
	// Name is the owner name.
	Name string
	// Rdata has the spelling of some rdata by their canonical form.
	Rdata map[string]string
}

// NewSpelling is nil if an owner name and its rdata are spelled as in canonical form.
func NewSpelling(key Key, name string, rdata map[string]string) *Spelling {
	if name == key.Name && len(rdata) == 0 {
		return nil
	}
	return &Spelling{name, rdata}
}

// Equal compares two spellings, either of which may be nil.
func (s *Spelling) Equal(o *Spelling) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.Name == o.Name && maps.Equal(s.Rdata, o.Rdata)
}

// SpelledName is the owner name in upper and lower case as declared.
func (s RRset) SpelledName() string {
	if s.Spelling == nil {
		return s.Name
	}
	return s.Spelling.Name
}

// SpelledRdata turns canonical rdata into its declared spelling.
func (s RRset) SpelledRdata(rdata string) string {
	if s.Spelling != nil {
		if spelled, ok := s.Spelling.Rdata[rdata]; ok {
			return spelled
		}
	}
	return rdata
}

// ToRR makes an RR of one of the RRset's rdata, spelled as declared.
func (s RRset) ToRR(rdata string) (dns.RR, error) {
	return ToRR(Key{s.SpelledName(), s.Type}, s.TTL, s.SpelledRdata(rdata))
}

// Equal compares name, type, TTL and data, however names are spelled.
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

// String has the form that people write: "www.example.com. A".
func (k Key) String() string { return k.Name + " " + TypeName(k.Type) }

// String is one line for people: "www.example.com. 300 A 192.0.2.1, 192.0.2.2".
func (s RRset) String() string {
	return fmt.Sprintf("%s %d %s %s", s.Name, s.TTL, dns.Type(s.Type), strings.Join(s.Rdata, ", "))
}

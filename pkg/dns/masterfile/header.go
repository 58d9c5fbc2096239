package masterfile

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// header is what is between owner and rdata: [class] [TTL] [class] type, the class once.
type header struct {
	ttl      uint32
	explicit bool
	// class is 0 if none is stated: then it is the zone's.
	class  uint16
	rrtype uint16
	aged   bool
	// foreign says what a type is that only one maker's server has; its data is not read.
	foreign string
}

// age is the time stamp that Microsoft's DNS server writes before the TTL of a record that a client has made, in hours since 1601.
var age = regexp.MustCompile(`^\[(AGE|Aging):[0-9]+\]$`)

// parseHeader reads a header, and returns the words behind it.
func parseHeader(words []word) (h header, rest []word, err error) {
	if len(words) > 0 && age.MatchString(words[0].text) {
		h.aged, words = true, words[1:]
	}
	take := func(read func(text string) bool) {
		if len(words) > 0 && !words[0].quoted && read(words[0].text) {
			words = words[1:]
		}
	}
	readClass := func(text string) (ok bool) {
		if h.class == 0 {
			h.class, ok = parseClass(text)
		}
		return ok
	}
	take(readClass)
	take(func(text string) bool {
		h.ttl, h.explicit = parseTTL(text)
		return h.explicit
	})
	take(readClass)
	switch {
	case len(words) == 0:
		return h, nil, errors.New("the type of the record is missing")
	case words[0].quoted:
		return h, nil, fmt.Errorf("%q stands in quotes where a TTL, a class or a type belongs", words[0].text)
	}
	rrtype, ok := rrset.ParseType(words[0].text)
	if number, what := rrset.ForeignType(words[0].text); what != "" && (!ok || rrtype == number) {
		rrtype, h.foreign, h.class, ok = number, what, 0, true
	}
	if !ok {
		return h, nil, fmt.Errorf("%q is neither a TTL, a class nor a known type; a type without a name is written TYPE65280 (RFC 3597 section 5)", words[0].text)
	}
	h.rrtype = rrtype
	return h, words[1:], nil
}

// classes are the mnemonics of BIND. RESERVED0 is no class, as CLASS0.
var classes = map[string]uint16{
	"RESERVED0": 0, "IN": dns.ClassINET, "CH": dns.ClassCHAOS, "CHAOS": dns.ClassCHAOS, "HS": dns.ClassHESIOD, "HESIOD": dns.ClassHESIOD,
	"NONE": dns.ClassNONE, "ANY": dns.ClassANY,
}

// parseClass reads the mnemonic of a class, or the form CLASS32 (RFC 3597 section 5).
func parseClass(text string) (uint16, bool) {
	text = strings.ToUpper(text)
	if number, generic := strings.CutPrefix(text, "CLASS"); generic {
		n, err := strconv.ParseUint(number, 10, 16)
		return uint16(n & math.MaxUint16), err == nil
	}
	class, ok := classes[text]
	return class, ok
}

// units are those of a TTL, in seconds.
var units = map[byte]uint64{'s': 1, 'm': 60, 'h': 3600, 'd': 24 * 3600, 'w': 7 * 24 * 3600}

// maxTTLText is how long a TTL may be as text.
const maxTTLText = 63

// parseTTL reads a time: a number of seconds, or numbers that each have a unit, as 1h30m. BIND takes a number without a unit
// after a time of 0.
func parseTTL(text string) (uint32, bool) {
	if len(text) > maxTTLText {
		return 0, false
	}
	total := uint64(0)
	for again := true; again; again = text != "" {
		digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
		n, err := strconv.ParseUint(text[:digits], 10, 32)
		if err != nil {
			return 0, false
		}
		unit := uint64(1)
		if text = text[digits:]; text != "" {
			unit = units[text[0]|0x20]
			text = text[1:]
		} else if total > 0 {
			return 0, false
		}
		if unit == 0 {
			return 0, false
		}
		total += n * unit
	}
	return uint32(total & math.MaxUint32), total <= math.MaxUint32
}

// limitTTL takes a TTL of more than 31 bits for 0 (RFC 2181 section 8).
func limitTTL(ttl uint32) uint32 {
	if ttl > rrset.MaxTTL {
		return 0
	}
	return ttl
}

package rrset

import (
	"errors"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// completeLocation adds the seconds to degrees and minutes, as miekg/dns wants them (RFC 1876 section 3: both may be left out).
func completeLocation(rdata string) string {
	fields := strings.Fields(rdata)
	out, numbers := make([]string, 0, len(fields)+2), 0
	for _, field := range fields {
		if numbers++; strings.Contains("NSEWnsew", field) {
			const withMinutes = 3 // degrees, minutes and the direction
			if numbers == withMinutes {
				out = append(out, "0")
			}
			numbers = 0
		}
		out = append(out, field)
	}
	return strings.Join(out, " ")
}

// quoteTexts puts the three texts of a NAPTR record in quotes, as miekg/dns wants them.
func quoteTexts(rdata string) string {
	words := parameterWords(rdata)
	const first, last = 2, 4
	for i := first; i <= last && i < len(words)-1; i++ {
		if words[i][0] != '"' {
			words[i] = `"` + words[i] + `"`
		}
	}
	return strings.Join(words, " ")
}

// namedKeys is how many keys of services have names in miekg/dns, which reads these by name only.
const namedKeys = int(dns.SVCB_OHTTP) + 1

// cutNumberedKeys takes the parameters out of a service's rdata whose keys have names and are written by number, such as key7="/q{?dns}".
// Their values are bytes (RFC 9460 section 2.1); BIND writes keys so that it has no name for.
func cutNumberedKeys(rdata string) (rest string, cut []dns.SVCBKeyValue, err error) {
	if !strings.Contains(rdata, "key") {
		return rdata, nil, nil
	}
	var kept []string
	for _, word := range parameterWords(rdata) {
		key, value, _ := strings.Cut(word, "=")
		digits, _ := strings.CutPrefix(key, "key")
		number, errNumber := strconv.Atoi(digits)
		if errNumber != nil || number >= namedKeys || key != "key"+strconv.Itoa(number) {
			kept = append(kept, word)
			continue
		}
		raw := ""
		if value != "" {
			n := 0
			if raw, n, err = nextString(value); err == nil && n < len(value) {
				err = errors.New("a parameter goes on behind the quote that ends its value")
			}
			if err != nil {
				return "", nil, err
			}
		}
		cut = append(cut, &dns.SVCBLocal{KeyCode: dns.SVCBKey(number), Data: []byte(raw)}) //nolint:gosec // bounded above
	}
	return strings.Join(kept, " "), cut, nil
}

// parameterWords cuts rdata at the blanks that are not in quotes.
func parameterWords(rdata string) (words []string) {
	begin, quoted := 0, false
	for i := 0; i < len(rdata); i++ {
		switch c := rdata[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t'):
			if i > begin {
				words = append(words, rdata[begin:i])
			}
			begin = i + 1
		}
	}
	if begin < len(rdata) {
		words = append(words, rdata[begin:])
	}
	return words
}

// addParameters adds parameters to those of a service.
func addParameters(rr dns.RR, more []dns.SVCBKeyValue) {
	switch r := rr.(type) {
	case *dns.SVCB:
		r.Value = append(r.Value, more...)
	case *dns.HTTPS:
		r.Value = append(r.Value, more...)
	}
}

// mnemonics are words of rdata that stand for numbers, by type and place, beside those that miekg/dns knows.
var mnemonics = map[uint16]map[int]map[string]int{
	dns.TypeDS:   delegationMnemonics,
	dns.TypeDLV:  delegationMnemonics,
	dns.TypeTA:   delegationMnemonics,
	dns.TypeCERT: {0: {"PKIX": 1, "SPKI": 2, "PGP": 3, "IPKIX": 4, "ISPKI": 5, "IPGP": 6, "ACPKIX": 7, "IACPKIX": 8, "URI": 253, "OID": 254}, 2: algorithms},
}

var (
	delegationMnemonics = map[int]map[string]int{1: algorithms, 2: {"SHA1": 1, "SHA-1": 1, "SHA256": 2, "SHA-256": 2, "GOST": 3, "SHA384": 4, "SHA-384": 4}}
	// algorithms are those of DNSSEC under the names of RFC 4034 appendix A.1 and of BIND.
	algorithms = map[string]int{
		"RSAMD5": 1, "DH": 2, "DSA": 3, "RSASHA1": 5, "NSEC3DSA": 6, "NSEC3RSASHA1": 7, "RSASHA256": 8, "RSASHA512": 10, "ECCGOST": 12,
		"ECDSAP256SHA256": 13, "ECDSAP384SHA384": 14, "ED25519": 15, "ED448": 16, "INDIRECT": 252, "PRIVATEDNS": 253, "PRIVATEOID": 254,
	}
)

// replaceMnemonics puts numbers in place of words, in any case.
func replaceMnemonics(rrtype uint16, rdata string) string {
	places := mnemonics[rrtype]
	if len(places) == 0 {
		return rdata
	}
	fields := strings.Fields(rdata)
	for place, numbers := range places {
		if place < len(fields) {
			if number, known := numbers[strings.ToUpper(fields[place])]; known {
				fields[place] = strconv.Itoa(number)
			}
		}
	}
	return strings.Join(fields, " ")
}

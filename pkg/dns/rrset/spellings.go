package rrset

import (
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// respell makes words of rdata as BIND reads them those that miekg/dns reads.
func respell(rrtype uint16, rdata string) string {
	switch rrtype {
	case dns.TypeNAPTR:
		return quoteTexts(rdata)
	case dns.TypeGPOS, dns.TypeX25:
		return unquote(rdata)
	case dns.TypeKEY:
		rdata = numberFlags(rdata)
	}
	return replaceMnemonics(rrtype, rdata)
}

// unquote takes words without anything special out of their quotes.
func unquote(rdata string) string {
	words := parameterWords(rdata)
	for i, word := range words {
		if bare := strings.Trim(word, `"`); bare != "" && `"`+bare+`"` == word && !strings.ContainsAny(bare, "\\ \t") {
			words[i] = bare
		}
	}
	return strings.Join(words, " ")
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

// mnemonics are words of rdata that stand for numbers, by type and place, beside those that miekg/dns knows.
var mnemonics = map[uint16]map[int]map[string]int{
	dns.TypeDS:   delegationMnemonics,
	dns.TypeDLV:  delegationMnemonics,
	dns.TypeTA:   delegationMnemonics,
	dns.TypeKEY:  {1: {"NONE": 0, "TLS": 1, "EMAIL": 2, "DNSSEC": 3, "IPSEC": 4, "ALL": 255}, 2: algorithms},
	dns.TypeRKEY: {2: algorithms},
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

// keyFlags are the flags of KEY data under the names of RFC 2535 section 7.1 and of BIND.
var keyFlags = map[string]uint64{
	"NOAUTH": 0x8000, "NOCONF": 0x4000, "NOKEY": 0xc000, "FLAG2": 0x2000, "EXTEND": 0x1000, "FLAG4": 0x0800, "FLAG5": 0x0400,
	"USER": 0, "ZONE": 0x0100, "HOST": 0x0200, "NTYP3": 0x0300, "FLAG8": 0x0080, "FLAG9": 0x0040, "FLAG10": 0x0020, "FLAG11": 0x0010,
	"SIG0": 0, "SIG1": 1, "SIG2": 2, "SIG3": 3, "SIG4": 4, "SIG5": 5, "SIG6": 6, "SIG7": 7,
	"SIG8": 8, "SIG9": 9, "SIG10": 10, "SIG11": 11, "SIG12": 12, "SIG13": 13, "SIG14": 14, "SIG15": 15, "KSK": 1,
}

// numberFlags puts a decimal number in place of the flags of KEY data, which may be names with "|" between them, or hexadecimal.
func numberFlags(rdata string) string {
	fields := strings.Fields(rdata)
	if len(fields) == 0 {
		return rdata
	}
	word := strings.ToUpper(fields[0])
	digits, hexadecimal := strings.CutPrefix(word, "0X")
	flags, err := strconv.ParseUint(digits, 16, 16)
	if !hexadecimal {
		flags, err = 0, nil
		for name := range strings.SplitSeq(strings.TrimSuffix(word, "|"), "|") {
			flag, known := keyFlags[name]
			if !known {
				return rdata
			}
			flags |= flag
		}
	}
	if err != nil {
		return rdata
	}
	fields[0] = strconv.FormatUint(flags, 10)
	return strings.Join(fields, " ")
}

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

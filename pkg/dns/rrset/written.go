package rrset

import (
	"errors"
	"fmt"
	"strings"

	"github.com/miekg/dns"
)

// writtenForms are what the data of types looks like, for people whose data cannot be read.
var writtenForms = map[uint16]string{
	dns.TypeTLSA:       "usage, selector, matching type and the data in hexadecimal, as in 3 1 1 0123abcd",
	dns.TypeSMIMEA:     "usage, selector, matching type and the data in hexadecimal, as in 3 0 1 0123abcd",
	dns.TypeSSHFP:      "algorithm, type and the fingerprint in hexadecimal without colons, as in 4 2 0123abcd",
	dns.TypeDS:         delegationForm,
	dns.TypeDLV:        delegationForm,
	dns.TypeTA:         delegationForm,
	dns.TypeZONEMD:     "serial, scheme, algorithm and the digest in hexadecimal",
	dns.TypeHTTPS:      serviceForm,
	dns.TypeSVCB:       serviceForm,
	dns.TypeNAPTR:      `order, preference, flags, services, regexp and replacement, as in 100 10 "u" "E2U+sip" "!^.*$!sip:info@example.com!" .`,
	dns.TypeURI:        `priority, weight and the target in quotes, as in 10 1 "https://example.com/"`,
	dns.TypeHINFO:      `two texts, as in "Intel" "Linux"`,
	dns.TypeLOC:        "degrees with minutes and seconds, N or S, the same with E or W, and up to four lengths, as in 52 22 23.0 N 4 53 32.0 E -2m",
	dns.TypeRP:         "the domain name of a mailbox and that of a text, as in admin.example.com. .",
	dns.TypeCERT:       "type, key tag, algorithm and the certificate in base64, as in PKIX 0 0 MIIB",
	dns.TypeOPENPGPKEY: "a key in base64",
	dns.TypeDHCID:      "the identifier in base64",
	dns.TypeAFSDB:      "a number and a host name, as in 1 afs.example.com.",
	dns.TypeKX:         "a number and a host name, as in 10 kx.example.com.",
	dns.TypeIPSECKEY:   "precedence, gateway type, algorithm, gateway and the key in base64",
	dns.TypeISDN:       `address, and subaddress if there is one, as in "150862028003217" "004"`,
	dns.TypeAMTRELAY:   "precedence, discovery flag, type and relay, as in 10 0 1 203.0.113.15",
	dns.TypeATMA:       "an address in hexadecimal, or + and a telephone number, as in +358.400.1234567",
	typeWKS:            "address, protocol and ports, as in 192.0.2.1 6 25 53",
	typeA6:             "length of the prefix, address and name of the prefix, as in 64 ::1 prefix.example.com.",
	typeNSAP:           "hexadecimal digits, as in 0x47.0005.80",
	typeWALLET:         `texts, as in "BTC" "bc1q0"`,
	typeDSYNC:          "type, scheme, port and target, as in CDS NOTIFY 5300 cds.example.com.",
	typeSINK:           "meaning, coding, subcoding and data in base64",
	typeDOA:            "enterprise, type, location, media type and data in base64, or - for none",
	typeHHIT:           "data in base64",
	typeBRID:           "data in base64",
	dns.TypeAPL:        "networks, as in 1:192.0.2.0/24 !2:2001:db8::/32",
}

const (
	delegationForm = "key tag, algorithm, digest type and the digest in hexadecimal, as in 12345 13 2 0123abcd"
	serviceForm    = "priority, target and parameters, as in 1 . alpn=h2,h3"
)

// counted are how many words the data of types has that miekg/dns would read with fewer or more.
var counted = map[uint16]struct{ least, most int }{
	dns.TypeNAPTR:  {6, 6},
	dns.TypeTLSA:   {4, dns.MaxMsgSize}, // The last may have blanks in it.
	dns.TypeSMIMEA: {4, dns.MaxMsgSize},
	dns.TypeCERT:   {4, dns.MaxMsgSize},
}

// checkWritten refuses rdata as people write it that miekg/dns would read as something else.
func checkWritten(rrtype uint16, rdata string) error {
	if isRaw(rrtype, rdata) || strings.ContainsAny(rdata, "\r\n") {
		return nil // These are read in full, or not at all.
	}
	if count, ok := counted[rrtype]; ok {
		if words := parameterWords(rdata); len(words) < count.least || len(words) > count.most {
			return errors.New("the data is " + writtenForms[rrtype])
		}
	}
	return nil
}

// explainUnread makes the cause that miekg/dns has for unread rdata one that says what to write.
func explainUnread(rrtype uint16, rdata string, cause error) error {
	form, known := writtenForms[rrtype]
	switch {
	case !ReadsText(rrtype) && !isRaw(rrtype, rdata):
		return errNotBytes
	case isRaw(rrtype, rdata):
		return errors.New(`behind \# belong the number of bytes and these in hexadecimal, and they have to be data of this type (RFC 3597 section 5)`)
	case rrtype == dns.TypeHTTPS || rrtype == dns.TypeSVCB:
		if wrong := wrongParameter(rdata); wrong != nil {
			return wrong
		}
	}
	if !known {
		return cause
	}
	text := strings.TrimPrefix(strings.TrimPrefix(cause.Error(), ": "), "encoding/hex: ")
	return fmt.Errorf("%s; the data is %s", text, form)
}

// parameterForms are the values that a service's parameters have.
var parameterForms = map[string]string{
	"mandatory":       "keys of other parameters, as in mandatory=alpn,port",
	"alpn":            "protocols without blanks between them, as in alpn=h2,h3",
	"no-default-alpn": "no value",
	"port":            "a number from 0 to 65535",
	"ipv4hint":        "IPv4 addresses without blanks between them, as in ipv4hint=192.0.2.1,192.0.2.2",
	"ipv6hint":        "IPv6 addresses without blanks between them, as in ipv6hint=2001:db8::1,2001:db8::2",
	"ech":             "base64 with its final = signs",
	"ohttp":           "no value",
}

// wrongParameter finds the parameter of a service that cannot be read, nil if it is something else.
func wrongParameter(rdata string) error {
	words := parameterWords(rdata)
	const parameters = 2 // behind priority and target
	seen := map[string]bool{}
	for i := parameters; i < len(words); i++ {
		word := words[i]
		key, _, _ := strings.Cut(word, "=")
		if seen[key] {
			return fmt.Errorf("the parameter %s is there twice", Shorten(key))
		}
		seen[key] = true
		if _, err := ParseRR(dns.RR_Header{Name: ".", Rrtype: dns.TypeHTTPS, Class: dns.ClassINET}, "1 . "+word, "."); err == nil {
			continue
		}
		form, known := parameterForms[key]
		if !known {
			return fmt.Errorf("%q is no parameter that is known: keys are in lower case, those without a name are written by number, as in key65280=x", Shorten(word))
		}
		return fmt.Errorf("%q cannot be read: %s has %s", Shorten(word), key, form)
	}
	return nil
}

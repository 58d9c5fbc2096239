package rrset

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/miekg/dns"
)

// MaxTTL is the greatest TTL in seconds (RFC 2181 section 8).
const MaxTTL = math.MaxInt32

// rdataCodec converts the rdata of one RR type between text, canonical text and the form of miekg/dns.
type rdataCodec struct {
	// parse returns the canonical form.
	parse func(rdata string) (string, error)
	// build returns the RR; its rdata may be in any form that parse reads.
	build func(h dns.RR_Header, rdata string) (dns.RR, error)
	// text returns the canonical rdata of an RR; ok is false when the RR is not of the Go type that miekg/dns uses.
	text func(rr dns.RR) (rdata string, ok bool)
}

// textOf makes the text of a codec for RRs of one Go type.
func textOf[R dns.RR](text func(R) (string, bool)) func(dns.RR) (string, bool) {
	return func(rr dns.RR) (string, bool) {
		r, ok := rr.(R)
		if !ok {
			return "", false
		}
		return text(r)
	}
}

var codecs = map[uint16]rdataCodec{
	dns.TypeA:     aCodec,
	dns.TypeAAAA:  aaaaCodec,
	dns.TypeNS:    nsCodec,
	dns.TypeCNAME: cnameCodec,
	dns.TypePTR:   ptrCodec,
	dns.TypeDNAME: dnameCodec,
	dns.TypeMX:    mxCodec,
	dns.TypeSRV:   srvCodec,
	dns.TypeTXT:   txtCodec,
	dns.TypeCAA:   caaCodec,
	dns.TypeSOA:   soaCodec,
}

// Parse brings one rdata in presentation form into its canonical form: what FromRR makes of the same data from the network. Names in it
// are taken as complete, with or without the final dot, and become lower case, as does the tag of a CAA record (RFC 8659 section 4.1).
// Types without rules of their own go through miekg/dns' parser, and unknown types have the form of RFC 3597 section 5.
func Parse(key Key, rdata string) (string, error) {
	s, err := codecOf(key.Type, rdata).parse(rdata)
	if err != nil {
		return "", fmt.Errorf("%s rdata %q: %w", dns.Type(key.Type), Shorten(rdata), err)
	}
	return s, nil
}

// ParseRelative parses rdata in which names without a final dot are relative to the origin, as in a zone file. It is for types without
// rules of their own; spelled keeps upper and lower case. The error says what the type's data looks like.
func ParseRelative(rrtype uint16, rdata, origin string) (canonical, spelled string, err error) {
	if err := checkWritten(rrtype, rdata); err != nil {
		return "", "", fmt.Errorf("%s rdata %q: %w", TypeName(rrtype), Shorten(rdata), err)
	}
	rr, err := ParseRR(dns.RR_Header{Name: ".", Rrtype: rrtype, Class: dns.ClassINET}, rdata, origin)
	if err != nil {
		return "", "", fmt.Errorf("%s rdata %q: %w", TypeName(rrtype), Shorten(rdata), explainUnread(rrtype, rdata, err))
	}
	_, _, canonical = FromRR(rr)
	if isRaw(rrtype, rdata) && !isSame(rr, canonical) {
		return "", "", fmt.Errorf("%s rdata %q: %w", TypeName(rrtype), Shorten(rdata), explainUnread(rrtype, rdata, errNotItsBytes))
	}
	if spelled = canonical; hasFoldedNames(rr) {
		spelled = printRR(rr)
	}
	return canonical, spelled, nil
}

// isSame reports whether canonical rdata stands for an RR, but for upper and lower case.
func isSame(rr dns.RR, canonical string) bool {
	raw, err := rdataOf(rr)
	again, errAgain := ToRR(Key{Name: ".", Type: rr.Header().Rrtype}, 0, canonical)
	if err != nil || errAgain != nil {
		return false
	}
	packed, err := rdataOf(again)
	return err == nil && bytes.Equal(bytes.ToLower(raw), bytes.ToLower(packed))
}

// HasRules reports whether package rrset, not miekg/dns, defines the text of a type.
func HasRules(rrtype uint16) bool {
	_, ok := codecs[rrtype]
	return ok
}

// isRaw recognizes the form of RFC 3597 section 5, which every type may have. In a TXT record, \# alone is a text.
func isRaw(rrtype uint16, rdata string) bool {
	if !strings.HasPrefix(rdata, `\#`) {
		return false
	}
	f := strings.Fields(rdata)
	return len(f) > 1 && f[0] == `\#` && (rrtype != dns.TypeTXT || strings.Trim(f[1], "0123456789") == "")
}

func codecOf(rrtype uint16, rdata string) rdataCodec {
	if c, ok := codecs[rrtype]; ok && !isRaw(rrtype, rdata) {
		return c
	}
	return genericCodec(rrtype)
}

// ToRR makes an RR of class IN that packs to exactly the given data: names keep their upper and lower case. The rdata may be in any form
// that Parse reads.
func ToRR(key Key, ttl uint32, rdata string) (dns.RR, error) {
	rr, err := codecOf(key.Type, rdata).build(dns.RR_Header{Name: key.Name, Rrtype: key.Type, Class: dns.ClassINET, Ttl: ttl}, rdata)
	if err != nil {
		return nil, fmt.Errorf("%s %s rdata %q: %w", key.Name, dns.Type(key.Type), Shorten(rdata), err)
	}
	return rr, nil
}

// FromRR brings an RR that was read from the network or made by ToRR into canonical form. A TTL above 2^31-1 becomes 2^31-1. It never
// fails: names that CanonicalName refuses are kept in lower case.
func FromRR(rr dns.RR) (key Key, ttl uint32, rdata string) {
	h := rr.Header()
	key = Key{Name: lenientName(h.Name), Type: h.Rrtype}
	ttl = min(h.Ttl, MaxTTL)
	if c, ok := codecs[h.Rrtype]; ok {
		if rdata, ok = c.text(rr); ok {
			return key, ttl, rdata
		}
	}
	if raw, ok := rr.(*dns.RFC3597); ok {
		if known, ok := unpackRawRdata(raw); ok && !losesData(known) {
			return FromRR(known)
		}
		return key, ttl, strings.TrimSuffix(fmt.Sprintf(`\# %d %s`, len(raw.Rdata)/2, raw.Rdata), " ")
	}
	return key, ttl, genericText(rr)
}

// lenientName is the canonical name, or the name in lower case where CanonicalName refuses it: what a server sent is shown as it is.
func lenientName(name string) string {
	if c, err := CanonicalName(name); err == nil {
		return c
	}
	return dns.CanonicalName(name)
}

// splitFields splits rdata at blanks into as many fields as form names.
func splitFields(rdata, form string) ([]string, error) {
	f, want := strings.Fields(rdata), strings.Count(form, " ")+1
	if len(f) != want {
		return nil, fmt.Errorf("expected %d fields, got %d: %s", want, len(f), form)
	}
	return f, nil
}

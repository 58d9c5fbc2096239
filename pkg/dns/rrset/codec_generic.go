package rrset

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

const soaForm = "mname rname serial refresh retry expire minimum"

// soaCodec gives the SOA of a transfer or an update a canonical form, too; desired zones hold it as an SOA value.
var soaCodec = rdataCodec{
	parse: func(s string) (string, error) {
		soa, err := ParseSOA(s)
		return soa.Rdata(), err
	},
	build: func(h dns.RR_Header, s string) (dns.RR, error) {
		soa, err := ParseSOA(s)
		if err != nil {
			return nil, err
		}
		rr := ToSOA(h.Name, soa)
		rr.Hdr = h
		return rr, nil
	},
	text: textOf(func(r *dns.SOA) (string, bool) { return FromSOA(r).Rdata(), true }),
}

// ParseSOA reads SOA rdata in presentation form. The TTL is not part of it and stays 0.
func ParseSOA(rdata string) (SOA, error) {
	f, err := splitFields(rdata, soaForm)
	if err != nil {
		return SOA{}, err
	}
	var s SOA
	if s.MName, err = CanonicalName(f[0]); err != nil {
		return SOA{}, err
	}
	if s.RName, err = CanonicalName(f[1]); err != nil {
		return SOA{}, err
	}
	for i, p := range []*uint32{&s.Serial, &s.Refresh, &s.Retry, &s.Expire, &s.Minimum} {
		v, err := strconv.ParseUint(f[i+2], 10, 32)
		if err != nil {
			return SOA{}, fmt.Errorf("%s %q is not a number from 0 to 4294967295", strings.Fields(soaForm)[i+2], f[i+2])
		}
		*p = uint32(v)
	}
	return s, nil
}

// genericCodec leaves the rdata of a type to miekg/dns.
func genericCodec(rrtype uint16) rdataCodec {
	build := func(h dns.RR_Header, rdata string) (dns.RR, error) {
		h.Name, h.Rrtype = dns.Fqdn(h.Name), rrtype
		return ParseRR(h, rdata, ".")
	}
	return rdataCodec{
		parse: func(s string) (string, error) {
			rr, err := build(dns.RR_Header{Name: "."}, s)
			if err != nil {
				return "", err
			}
			_, _, rdata := FromRR(rr)
			return rdata, nil
		},
		build: build,
	}
}

// ParseRR makes an RR of rdata as a zone file has it, with names relative to an origin. It is for types without rules of their own.
func ParseRR(h dns.RR_Header, rdata, origin string) (dns.RR, error) {
	if strings.ContainsAny(rdata, "\r\n") {
		return nil, errors.New("rdata must be one line")
	}
	var cut []parameter
	switch write := encoders[h.Rrtype]; {
	case isRaw(h.Rrtype, rdata):
		return parseRaw(h, rdata)
	case write != nil:
		return encode(h, rdata, origin, write)
	case !ReadsText(h.Rrtype):
		return nil, errNotBytes
	case h.Rrtype == dns.TypeSVCB || h.Rrtype == dns.TypeHTTPS:
		var err error
		if rdata, cut, err = cutParameters(rdata); err != nil {
			return nil, err
		}
	case !hasTexts(h.Rrtype) && strings.Contains(rdata, `"`):
		return nil, errors.New("quotes are for texts alone: leave them out")
	default:
		rdata = respell(h.Rrtype, rdata)
	}
	// The owner is the root: the parser would take some owners for directives.
	parser := dns.NewZoneParser(strings.NewReader(fmt.Sprintf(". %d IN %s %s\n", h.Ttl, dns.Type(h.Rrtype), rdata)), origin, "")
	rr, _ := parser.Next()
	switch err := parser.Err(); {
	case err != nil:
		text, _, _ := strings.Cut(err.Error(), " at line: ") // There is one line, and it is ours.
		return nil, errors.New(strings.TrimPrefix(text, "dns: "))
	case rr == nil:
		return nil, errors.New("the rdata is empty")
	}
	if _, err := base64.StdEncoding.Strict().DecodeString(keyOf(rr)); err != nil {
		return nil, errors.New("the data in base64 is cut off, or has bits that mean nothing")
	}
	*rr.Header() = h
	if len(cut) > 0 {
		return addParameters(rr, cut)
	}
	raw, err := rdataOf(rr)
	if err != nil {
		return nil, err
	}
	return fromBytes(h, raw) // Different spellings of the same data have the same bytes.
}

// hasTexts reports whether rdata of a type that miekg/dns reads has words that may be in quotes: of names, it would make a part.
func hasTexts(rrtype uint16) bool {
	switch rrtype {
	case dns.TypeTXT, dns.TypeSPF, dns.TypeAVC, dns.TypeNINFO, dns.TypeRESINFO, dns.TypeNAPTR, dns.TypeX25, dns.TypeGPOS, dns.TypeCAA:
		return true
	}
	return false
}

// keyOf is the base64 in data. miekg/dns drops bits at its end.
func keyOf(rr dns.RR) string {
	switch r := rr.(type) {
	case *dns.KEY:
		return r.PublicKey
	case *dns.RKEY:
		return r.PublicKey
	case *dns.CERT:
		return r.Certificate
	case *dns.DHCID:
		return r.Digest
	case *dns.OPENPGPKEY:
		return r.PublicKey
	case *dns.IPSECKEY:
		return r.PublicKey
	case *dns.HIP:
		return r.PublicKey
	}
	return ""
}

// parseRaw reads the form of RFC 3597 section 5.
func parseRaw(h dns.RR_Header, rdata string) (dns.RR, error) {
	words := strings.Fields(rdata)
	raw, err := hex.DecodeString(strings.Join(words[2:], ""))
	if size, errSize := strconv.ParseUint(words[1], 10, 16); err != nil || errSize != nil || int(size) != len(raw) {
		return nil, errNotItsBytes
	}
	return fromBytes(h, raw)
}

var (
	errNotItsBytes = errors.New("the bytes are no data of this type")
	errNotBytes    = errors.New(`data of this type is written as bytes: \# LENGTH HEX (RFC 3597 section 5)`)
)

// opaque are types of which BIND takes data that miekg/dns refuses, changes or does not know, with what BIND takes.
var opaque = map[uint16]func(raw []byte) error{
	dns.TypeSVCB:     checkService,
	dns.TypeHTTPS:    checkService,
	dns.TypeAPL:      checkNetworks,
	dns.TypeURI:      layout{head: 2 + 2, rest: true}.check,
	dns.TypeAMTRELAY: checkRelay,
	dns.TypeISDN:     checkNumber,
	typeWKS:          checkPorts,
	typeA6:           checkPrefix,
	dns.TypeATMA:     checkEndSystem,
	typeNSAP:         layout{head: 1, rest: true}.check,
	typeSINK:         layout{head: 3, rest: true}.check,
	typeDSYNC:        layout{head: 2 + 1 + 2, name: true}.check,
	typeHHIT:         layout{head: 1, rest: true}.check,
	typeBRID:         layout{head: 1, rest: true}.check,
	typeDOA:          layout{head: 4 + 4 + 1, strings: 1, rest: true}.check,
	typeWALLET:       checkStrings,
	dns.TypeUINFO:    layout{rest: true}.check,
	dns.TypeUID:      layout{rest: true}.check,
	dns.TypeGID:      layout{rest: true}.check,
}

// layout is what data consists of, in this order: bytes of numbers, character-strings, a name, and whatever else.
type layout struct {
	head, strings int
	name, rest    bool
}

func (l layout) check(raw []byte) error {
	if len(raw) < l.head {
		return errNotItsBytes
	}
	raw = raw[l.head:]
	for range l.strings {
		if len(raw) == 0 || len(raw) <= int(raw[0]) {
			return errNotItsBytes
		}
		raw = raw[1+int(raw[0]):]
	}
	if l.name {
		_, n, err := dns.UnpackDomainName(raw, 0)
		if err != nil {
			return errNotItsBytes
		}
		raw = raw[n:]
	}
	if len(raw) > 0 && !l.rest {
		return errNotItsBytes
	}
	return nil
}

// checkStrings checks character-strings, of which there is one at least.
func checkStrings(raw []byte) error {
	for first := true; first || len(raw) > 0; first = false {
		if err := (layout{strings: 1, rest: true}).check(raw); err != nil {
			return err
		}
		raw = raw[1+int(raw[0]):]
	}
	return nil
}

// checkNetworks checks the bytes of an address prefix list as BIND does.
func checkNetworks(raw []byte) error {
	const head, longest = 4, 0x7f
	for len(raw) > 0 {
		if len(raw) < head || len(raw)-head < int(raw[3]&longest) {
			return errNotItsBytes
		}
		size := map[uint16]int{1: net.IPv4len, 2: net.IPv6len}[binary.BigEndian.Uint16(raw)]
		length := int(raw[3] & longest)
		if size > 0 && (int(raw[2]) > 8*size || length > size) || length > 0 && raw[head+length-1] == 0 {
			return errNotItsBytes
		}
		raw = raw[head+length:]
	}
	return nil
}

// fromBytes makes an RR of rdata, of the Go type of miekg/dns if that packs to the same bytes.
func fromBytes(h dns.RR_Header, rdata []byte) (dns.RR, error) {
	raw, check := &dns.RFC3597{Hdr: h, Rdata: hex.EncodeToString(rdata)}, opaque[h.Rrtype]
	if dns.TypeToRR[h.Rrtype] == nil && check == nil {
		return raw, nil
	}
	if known, ok := unpackRawRdata(raw); ok {
		if again, err := rdataOf(known); err == nil && bytes.Equal(again, rdata) {
			return known, nil
		}
	}
	if check == nil {
		return nil, errNotItsBytes
	}
	return raw, check(rdata)
}

// rdataOf packs the rdata of an RR.
func rdataOf(rr dns.RR) ([]byte, error) {
	const slack, head = 16, 2 + 2 + 4 + 2 // type, class, TTL, length
	packed := make([]byte, dns.Len(rr)+slack)
	n, err := dns.PackRR(rr, packed, 0, nil, false)
	if err != nil {
		return nil, err
	}
	_, begin, err := dns.UnpackDomainName(packed, 0)
	if err != nil {
		return nil, err
	}
	return packed[begin+head : n], nil
}

// UnpackRR reads the record at an offset of a message, and returns where the next one begins. Data that servers take and miekg/dns refuses stays
// bytes: one record must not keep a whole zone from being read.
func UnpackRR(message []byte, off int) (rr dns.RR, next int, err error) {
	if rr, next, err = dns.UnpackRR(message, off); err == nil && !losesData(rr) {
		return rr, next, nil
	}
	name, begin, errName := dns.UnpackDomainName(message, off)
	const head = 2 + 2 + 4 + 2 // type, class, TTL, length
	if errName != nil || len(message)-begin < head {
		return nil, next, err
	}
	field := message[begin:]
	h := dns.RR_Header{Name: name, Rrtype: binary.BigEndian.Uint16(field), Class: binary.BigEndian.Uint16(field[2:]),
		Ttl: binary.BigEndian.Uint32(field[4:]), Rdlength: binary.BigEndian.Uint16(field[8:])}
	check, end := opaque[h.Rrtype], head+int(h.Rdlength)
	if check == nil || len(field) < end || check(field[head:end]) != nil {
		return rr, next, err
	}
	return &dns.RFC3597{Hdr: h, Rdata: hex.EncodeToString(field[head:end])}, begin + end, nil
}

// losesData reports whether miekg/dns would send less or more rdata than it has read.
func losesData(rr dns.RR) bool {
	size := int(rr.Header().Rdlength) // Packing changes it.
	if opaque[rr.Header().Rrtype] == nil || size == 0 {
		return false
	}
	again, err := rdataOf(rr)
	return err != nil || len(again) != size
}

// genericText prints rdata as miekg/dns does. miekg/dns adds the elements of a list to the text one by one, which takes seconds for a
// record of 64 KiB: here the record is printed without its list, and then the list.
func genericText(rr dns.RR) string {
	switch r := rr.(type) {
	case *dns.NULL: // It has no text of its own (RFC 1035 section 3.3.10).
		return rawText([]byte(r.Data))
	case *dns.URI: // miekg/dns reads the target as it is, and takes a backslash in it for an escape when it writes it.
		return fmt.Sprintf("%d %d %s", r.Priority, r.Weight, appendQuoted(nil, r.Target))
	case *dns.UINFO, *dns.UID, *dns.GID: // BIND has no text for them.
		if raw, err := rdataOf(rr); err == nil {
			return rawText(raw)
		}
	case *dns.AMTRELAY:
		const flag = 0x80 // There are words for types up to that of hosts, with or without the flag.
		if raw, err := rdataOf(rr); r.GatewayType&^flag > dns.IPSECGatewayHost && err == nil {
			return rawText(raw)
		}
	case *dns.LOC:
		if raw, err := rdataOf(r); r.Version != 0 && err == nil {
			return rawText(raw)
		}
	}
	if hasFoldedNames(rr) {
		rr = dns.Copy(rr)
		for _, name := range foldedNames(rr) {
			*name = lenientName(*name)
		}
	}
	return printRR(rr)
}

// rawText is the form of RFC 3597 section 5.
func rawText(data []byte) string {
	return strings.TrimSuffix(fmt.Sprintf(`\# %d %x`, len(data), data), " ")
}

func hasFoldedNames(rr dns.RR) bool { return len(foldedNames(rr)) > 0 }

// foldedNames are the names in the rdata whose upper and lower case is no part of the data (RFC 4034 section 6.2), of types without a
// codec of their own. In later types, such as SVCB, it is: servers compare these byte by byte (RFC 3597 section 6).
func foldedNames(rr dns.RR) []*string {
	switch r := rr.(type) {
	case *dns.NAPTR:
		return []*string{&r.Replacement}
	case *dns.RP:
		return []*string{&r.Mbox, &r.Txt}
	case *dns.AFSDB:
		return []*string{&r.Hostname}
	case *dns.RT:
		return []*string{&r.Host}
	case *dns.KX:
		return []*string{&r.Exchanger}
	case *dns.PX:
		return []*string{&r.Map822, &r.Mapx400}
	case *dns.MB:
		return []*string{&r.Mb}
	case *dns.MG:
		return []*string{&r.Mg}
	case *dns.MR:
		return []*string{&r.Mr}
	case *dns.MINFO:
		return []*string{&r.Rmail, &r.Email}
	}
	return nil
}

func printRR(rr dns.RR) string {
	var list []string
	switch r := rr.(type) {
	case *dns.NSEC:
		bare := *r
		rr, list, bare.TypeBitMap = &bare, typeNames(r.TypeBitMap), nil
	case *dns.NSEC3:
		bare := *r
		rr, list, bare.TypeBitMap = &bare, typeNames(r.TypeBitMap), nil
	case *dns.CSYNC:
		bare := *r
		rr, list, bare.TypeBitMap = &bare, typeNames(r.TypeBitMap), nil
	case *dns.HIP:
		bare := *r
		rr, list, bare.RendezvousServers = &bare, printedNames(r.RendezvousServers), nil
	case *dns.SVCB:
		bare := *r
		rr, list, bare.Value = &bare, serviceParameters(r.Value), nil
	case *dns.HTTPS:
		bare := *r
		rr, list, bare.Value = &bare, serviceParameters(r.Value), nil
	}
	text := strings.TrimPrefix(rr.String(), rr.Header().String())
	if len(list) == 0 {
		return text
	}
	return text + " " + strings.Join(list, " ")
}

func typeNames(types []uint16) (names []string) {
	for _, t := range types {
		name := dns.Type(t).String()
		if t == dns.TypeNone || t == dns.TypeReserved { // miekg/dns does not read these names again.
			name = "TYPE" + strconv.Itoa(int(t))
		}
		names = append(names, name)
	}
	return names
}

func printedNames(all []string) (names []string) {
	for _, n := range all {
		names = append(names, dns.Name(n).String())
	}
	return names
}

func serviceParameters(values []dns.SVCBKeyValue) (parameters []string) {
	for _, v := range values {
		parameters = append(parameters, v.Key().String()+`="`+v.String()+`"`)
	}
	return parameters
}

// unpackRawRdata converts raw rdata (RFC 3597) of a type that miekg/dns knows. Of two types, data may be empty.
func unpackRawRdata(raw *dns.RFC3597) (dns.RR, bool) {
	rrtype := raw.Hdr.Rrtype
	if dns.TypeToRR[rrtype] == nil || raw.Rdata == "" && rrtype != dns.TypeAPL && rrtype != dns.TypeNULL {
		return nil, false
	}
	wire, err := hex.DecodeString(raw.Rdata)
	if err != nil || len(wire) > maxRdata {
		return nil, false
	}
	h := raw.Hdr
	h.Rdlength = uint16(len(wire)) //nolint:gosec // bounded above
	rr, n, err := dns.UnpackRRWithHeader(h, wire, 0)
	if err != nil || n != len(wire) {
		return nil, false
	}
	if _, same := rr.(*dns.RFC3597); same {
		return nil, false
	}
	return rr, true
}

package rrset

import (
	"encoding/hex"
	"errors"
	"fmt"
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
		return parseGeneric(h, rdata, ".")
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

// discovery is the flag in the type of an AMTRELAY's relay (RFC 8777 section 4.2.2). miekg/dns loses the relay beside it.
const discovery = 0x80

// parseGeneric reads rdata, with names relative to an origin, by miekg/dns' parser of zone files.
func parseGeneric(h dns.RR_Header, rdata, origin string) (dns.RR, error) {
	if strings.ContainsAny(rdata, "\r\n") {
		return nil, errors.New("rdata must be one line")
	}
	var numbered []dns.SVCBKeyValue
	switch {
	case isRaw(h.Rrtype, rdata):
	case h.Rrtype == dns.TypeLOC:
		rdata = completeLocation(rdata)
	case h.Rrtype == dns.TypeSVCB || h.Rrtype == dns.TypeHTTPS:
		var err error
		if rdata, numbered, err = cutNumberedKeys(rdata); err != nil {
			return nil, err
		}
	case h.Rrtype == dns.TypeNAPTR:
		rdata = quoteTexts(rdata)
	default:
		rdata = replaceMnemonics(h.Rrtype, rdata)
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
	if relay, ok := rr.(*dns.AMTRELAY); ok && relay.GatewayType > discovery && !isRaw(h.Rrtype, rdata) {
		return nil, errors.New("a relay with the discovery flag is not supported")
	}
	addParameters(rr, numbered)
	rr, err := repackRR(rr)
	if err == nil {
		rr.Header().Name = h.Name
	}
	return rr, err
}

// genericText prints rdata as miekg/dns does. miekg/dns adds the elements of a list to the text one by one, which takes seconds for a
// record of 64 KiB: here the record is printed without its list, and then the list.
func genericText(rr dns.RR) string {
	if null, ok := rr.(*dns.NULL); ok { // It has no text of its own (RFC 1035 section 3.3.10).
		return rawText([]byte(null.Data))
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
		names = append(names, dns.Type(t).String())
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

// repackRR packs and unpacks an RR: different spellings of the same data have the same wire form.
func repackRR(rr dns.RR) (dns.RR, error) {
	wire := make([]byte, dns.MaxMsgSize)
	n, err := dns.PackRR(rr, wire, 0, nil, false)
	if err != nil {
		return nil, err
	}
	again, _, err := dns.UnpackRR(wire[:n], 0)
	return again, err
}

// unpackRawRdata converts raw rdata (RFC 3597) of a type that miekg/dns knows.
func unpackRawRdata(raw *dns.RFC3597) (dns.RR, bool) {
	if dns.TypeToRR[raw.Hdr.Rrtype] == nil {
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

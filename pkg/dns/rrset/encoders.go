package rrset

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// Types that miekg/dns has no name for.
const (
	typeWKS, typeNSAP, typeA6, typeSINK, typeDSYNC, typeHHIT, typeBRID, typeDOA, typeWALLET = 11, 22, 38, 40, 66, 67, 68, 259, 262
)

// encoders write the words of rdata as bytes, for types whose text miekg/dns does not read, or reads otherwise than BIND.
var encoders = map[uint16]func(*encoder){
	dns.TypeAPL:   (*encoder).networks,
	dns.TypeLOC:   (*encoder).location,
	dns.TypeURI:   func(e *encoder) { e.number(16); e.number(16); e.text() },
	dns.TypeHINFO: func(e *encoder) { e.str(); e.str() },
	dns.TypeNID:   func(e *encoder) { e.number(16); e.groups() },
	dns.TypeL64:   func(e *encoder) { e.number(16); e.groups() },
	dns.TypeL32:   func(e *encoder) { e.number(16); e.out = append(e.out, e.ipv4()...) },
	dns.TypeCSYNC: func(e *encoder) { e.number(32); e.number(16); e.types() },
	dns.TypeISDN: func(e *encoder) {
		if e.str(); len(e.words) > 0 {
			e.str()
		}
	},
	dns.TypeEUI48:    func(e *encoder) { e.octets(48 / 8) },
	dns.TypeEUI64:    func(e *encoder) { e.octets(64 / 8) },
	dns.TypeAMTRELAY: (*encoder).relay,
	dns.TypeATMA:     (*encoder).endSystem,
	typeWKS:          (*encoder).ports,
	typeA6:           (*encoder).prefix,
	typeNSAP:         (*encoder).accessPoint,
	typeSINK:         func(e *encoder) { e.number(8); e.number(8); e.number(8); e.base64() },
	typeDSYNC:        func(e *encoder) { e.rrtype(); e.scheme(); e.number(16); e.name() },
	typeHHIT:         func(e *encoder) { e.some(); e.base64() },
	typeBRID:         func(e *encoder) { e.some(); e.base64() },
	typeDOA:          func(e *encoder) { e.number(32); e.number(32); e.number(8); e.str(); e.object() },
	typeWALLET:       (*encoder).strs,
}

// ReadsText reports whether rdata of a type is read in another form than that of RFC 3597 section 5. Some types have a name in the registry
// and no text in BIND.
func ReadsText(rrtype uint16) bool {
	switch rrtype {
	case dns.TypeUINFO, dns.TypeUID, dns.TypeGID:
		return false
	}
	return encoders[rrtype] != nil || dns.TypeToRR[rrtype] != nil
}

// encode makes an RR of rdata in which names are relative to an origin.
func encode(h dns.RR_Header, rdata, origin string, write func(*encoder)) (dns.RR, error) {
	e := &encoder{words: parameterWords(rdata), origin: origin}
	write(e)
	if e.err == nil && len(e.words) > 0 {
		e.err = fmt.Errorf("%q is more than the type has", Shorten(e.words[0]))
	}
	if e.err == nil && len(e.out) > maxRdata {
		e.err = fmt.Errorf("the data takes %d bytes; a record has at most %d", len(e.out), maxRdata)
	}
	if e.err != nil {
		return nil, e.err
	}
	return &dns.RFC3597{Hdr: h, Rdata: hex.EncodeToString(e.out)}, nil
}

// encoder takes words one by one. After the first error, it writes nothing that means anything.
type encoder struct {
	words  []string
	origin string
	out    []byte
	err    error
}

func (e *encoder) fail(word, what string) {
	if e.err == nil {
		e.err = fmt.Errorf("%q is not %s", Shorten(word), what)
	}
}

// some fails if no word is left.
func (e *encoder) some() {
	if e.err == nil && len(e.words) == 0 {
		e.err = errors.New("the data is too short")
	}
}

func (e *encoder) next() (word string) {
	if e.some(); e.err == nil {
		word, e.words = e.words[0], e.words[1:]
	}
	return word
}

func (e *encoder) number(bits int) { e.append(e.numberBelow(1<<bits), bits) }

// numberBelow takes a number, and writes nothing.
func (e *encoder) numberBelow(bound uint64) uint64 {
	word := e.next()
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil || n >= bound {
		e.fail(word, fmt.Sprintf("a number from 0 to %d", bound-1))
		return 0
	}
	return n
}

// append writes a number of so many bits.
func (e *encoder) append(n uint64, bits int) {
	e.out = append(e.out, binary.BigEndian.AppendUint64(nil, n)[8-bits/8:]...)
}

// text takes a text of any length.
func (e *encoder) text() { e.out = append(e.out, e.unquoted()...) }

func (e *encoder) unquoted() (raw string) {
	word := e.next()
	if e.err != nil {
		return ""
	}
	raw, n, err := nextString(word)
	if err == nil && n < len(word) {
		e.fail(word, "one text")
	}
	if err != nil {
		e.err = err
	}
	return raw
}

// str takes a character-string (RFC 1035 section 3.3).
func (e *encoder) str() {
	raw := e.unquoted()
	if len(raw) > maxString {
		e.fail(raw, "a text of at most 255 bytes")
	}
	e.out = append(append(e.out, byte(len(raw))), raw...) //nolint:gosec // nobody takes what has failed
}

func (e *encoder) strs() {
	for first := true; e.err == nil && (first || len(e.words) > 0); first = false {
		e.str()
	}
}

// base64 takes all words that are left.
func (e *encoder) base64() {
	all := strings.Join(e.words, "")
	raw, err := base64.StdEncoding.Strict().DecodeString(all)
	if err != nil {
		e.fail(all, "base64 with its final = signs")
	}
	e.out, e.words = append(e.out, raw...), nil
}

// object is base64, or - for nothing (draft-durand-doa-over-dns section 3.2).
func (e *encoder) object() {
	if e.some(); len(e.words) == 1 && e.words[0] == "-" {
		e.words = nil
	}
	e.base64()
}

func (e *encoder) name() {
	name := e.next()
	switch {
	case name == "@":
		name = e.origin
	case e.err == nil && !dns.IsFqdn(name):
		name += "." + strings.TrimPrefix(e.origin, ".")
	}
	spelled, err := SpelledName(name)
	if err != nil && e.err == nil {
		e.err = err
	}
	packed := make([]byte, maxName)
	n, err := dns.PackDomainName(spelled, packed, 0, nil, false)
	if err != nil {
		e.fail(name, "a name")
		n = 0
	}
	e.out = append(e.out, packed[:n]...)
}

// address takes an address of a family, and writes nothing.
func (e *encoder) address(what string, family func(netip.Addr) bool) []byte {
	word := e.next()
	address, err := netip.ParseAddr(word)
	if err != nil || !family(address) || address.Zone() != "" {
		e.fail(word, what)
		return make([]byte, net.IPv6len)
	}
	return address.AsSlice()
}

func (e *encoder) ipv4() []byte { return e.address("an IPv4 address", netip.Addr.Is4) }

func (e *encoder) ipv6() []byte { return e.address("an IPv6 address", netip.Addr.Is6) }

// relay takes precedence, discovery flag, type and relay (RFC 8777 section 4.3). miekg/dns loses a relay beside the flag.
func (e *encoder) relay() {
	e.number(8)
	const flags, kinds = 2, 4
	flag, kind := byte(e.numberBelow(flags)), byte(e.numberBelow(kinds)) //nolint:gosec // bounded
	e.out = append(e.out, flag<<7|kind)
	switch kind {
	case dns.IPSECGatewayNone:
		if word := e.next(); word != "." {
			e.fail(word, ". for no relay")
		}
	case dns.IPSECGatewayIPv4:
		e.out = append(e.out, e.ipv4()...)
	case dns.IPSECGatewayIPv6:
		e.out = append(e.out, e.ipv6()...)
	case dns.IPSECGatewayHost:
		e.name()
	}
}

// checkRelay checks the bytes of an AMTRELAY record. BIND takes whatever follows a type that it does not know.
func checkRelay(raw []byte) error {
	const head, types = 2, 0x7f
	if len(raw) < head {
		return errNotItsBytes
	}
	switch raw[1] & types {
	case dns.IPSECGatewayNone:
		return layout{head: head}.check(raw)
	case dns.IPSECGatewayIPv4:
		return layout{head: head + net.IPv4len}.check(raw)
	case dns.IPSECGatewayIPv6:
		return layout{head: head + net.IPv6len}.check(raw)
	case dns.IPSECGatewayHost:
		return layout{head: head, name: true}.check(raw)
	}
	return nil
}

// rrtype is a type of record, by name or number (RFC 9859 section 3.1).
func (e *encoder) rrtype() {
	word := e.next()
	rrtype, known := ParseType(word)
	if n, err := strconv.ParseUint(word, 10, 16); err == nil {
		rrtype, known = uint16(n), true
	}
	if !known {
		e.fail(word, "a type of records")
	}
	e.append(uint64(rrtype), 16)
}

// types takes the types of records that a bit map has (RFC 7477 section 2.1.1.2.1).
func (e *encoder) types() {
	var found []uint16
	for e.err == nil && len(e.words) > 0 {
		word := e.next()
		rrtype, known := ParseType(word)
		if !known {
			e.fail(word, "a type of records")
		}
		found = append(found, rrtype)
	}
	slices.Sort(found)
	const head = 4 + 2 // serial, flags
	raw, err := rdataOf(&dns.CSYNC{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeCSYNC}, TypeBitMap: slices.Compact(found)})
	if err != nil {
		e.err = cmp.Or(e.err, err)
		return
	}
	e.out = append(e.out, raw[head:]...)
}

// groups takes four groups of up to four hexadecimal digits (RFC 6742 section 2.1.2).
func (e *encoder) groups() {
	word := e.next()
	groups := strings.Split(word, ":")
	const number = 4
	for _, group := range groups {
		n, err := strconv.ParseUint(group, 16, 16)
		if err != nil || len(group) > number || len(groups) != number {
			e.fail(word, "four groups of hexadecimal digits as in 2001:db8:1140:1000")
		}
		e.append(n, 16)
	}
}

// octets takes bytes of one or two hexadecimal digits (RFC 7043 section 3.2). What BIND reads behind them and drops is refused.
func (e *encoder) octets(count int) {
	word := e.next()
	octets := strings.Split(word, "-")
	for _, octet := range octets {
		n, err := strconv.ParseUint(octet, 16, 8)
		if err != nil || len(octet) > 2 || len(octets) != count {
			e.fail(word, fmt.Sprintf("%d bytes in hexadecimal as in %s", count, strings.Repeat("00-", count-1)+"00"))
		}
		e.append(n, 8)
	}
}

// scheme is how a change is told, by name or number (RFC 9859 section 6.2).
func (e *encoder) scheme() {
	if len(e.words) > 0 && strings.EqualFold(e.words[0], "NOTIFY") {
		e.words[0] = "1"
	}
	e.number(8)
}

var accessPoint = regexp.MustCompile(`^0[xX][0-9a-fA-F.]+$`)

// accessPoint takes hexadecimal digits, with dots between them (RFC 1706 section 6).
func (e *encoder) accessPoint() {
	word := e.next()
	raw, err := hex.DecodeString(strings.ReplaceAll(word[min(len(word), len("0x")):], ".", ""))
	if err != nil || len(raw) == 0 || !accessPoint.MatchString(word) {
		e.fail(word, "hexadecimal digits as in 0x47.0005.80")
	}
	e.out = append(e.out, raw...)
}

var network = regexp.MustCompile(`^(!?)([12]):([0-9A-Fa-f:.]+)/([0-9]{1,3})$`)

// networks takes an address prefix list (RFC 3123 section 5). Bits of the host stay, as BIND keeps them; miekg/dns drops them.
func (e *encoder) networks() {
	for e.err == nil && len(e.words) > 0 {
		word := e.next()
		parts := network.FindStringSubmatch(word)
		if parts == nil {
			e.fail(word, "a network such as 1:192.0.2.0/24 or !2:2001:db8::/32")
			return
		}
		address, err := netip.ParseAddr(parts[3])
		family, _ := strconv.Atoi(parts[2])
		bits, _ := strconv.Atoi(parts[4])
		if err != nil || address.Is4() != (family == 1) || bits > address.BitLen() {
			e.fail(word, "a network of its family")
			return
		}
		raw := strings.TrimRight(string(address.AsSlice()), "\x00")
		length := byte(len(raw)) //nolint:gosec // of an address
		if parts[1] != "" {
			length |= 0x80
		}
		e.out = append(append(e.out, 0, byte(family), byte(bits), length), raw...) //nolint:gosec // bounded above
	}
}

// location takes the words of RFC 1876 section 3, as BIND reads them.
func (e *encoder) location() {
	const (
		north, east           = 90, 180
		size, horizontal, far = 0x12, 0x16, 0x13 // The defaults: 1 m, 10000 m, 10 m.
	)
	latitude, longitude, altitude := e.angle(north, "N", "S"), e.angle(east, "E", "W"), e.altitude()
	e.out = append(e.out, 0)
	for _, precision := range []byte{size, horizontal, far} {
		if len(e.words) > 0 {
			precision = e.precision()
		}
		e.out = append(e.out, precision)
	}
	e.append(uint64(latitude), 32)
	e.append(uint64(longitude), 32)
	e.append(uint64(altitude), 32)
}

var (
	wholeNumber = regexp.MustCompile(`^[0-9]+$`)
	seconds     = regexp.MustCompile(`^([0-9]+)([.][0-9]{0,3})?$`)
	meters      = regexp.MustCompile(`^[0-9]+([.][0-9]{0,2})?$`)
)

// angle takes degrees, minutes, seconds and a direction, in thousandths of a second from 2^31.
func (e *encoder) angle(most int64, up, down string) uint32 {
	const scale, sixty = 1000, 60
	total, unit := int64(0), int64(sixty*sixty*scale)
	for place := 0; ; place++ {
		word := e.next()
		switch {
		case e.err != nil:
			return 0
		case place > 0 && word == up:
			return uint32(math.MaxInt32 + 1 + total)
		case place > 0 && word == down:
			return uint32(math.MaxInt32 + 1 - total)
		case place == 3:
			e.fail(word, up+" or "+down)
			return 0
		}
		form, bound := wholeNumber, most+1
		if place > 0 {
			bound = sixty
		}
		if place == 2 {
			form = seconds
		}
		n, ok := fixed(form, word, unit)
		if total += n; !ok || n >= bound*unit || total > most*sixty*sixty*scale {
			e.fail(word, fmt.Sprintf("a number for %s below %d, behind which %s or %s follows", []string{"degrees", "minutes", "seconds"}[place], bound, up, down))
			return 0
		}
		unit /= sixty
	}
}

// fixed multiplies a decimal number by a unit, which is a power of ten if it has digits behind its point.
func fixed(form *regexp.Regexp, word string, unit int64) (int64, bool) {
	whole, fraction, _ := strings.Cut(word, ".")
	const longest = 9 // digits, far above what any number may be
	whole = strings.TrimLeft(whole, "0")
	if !form.MatchString(word) || len(whole) > longest {
		return 0, false
	}
	n, _ := strconv.ParseInt("0"+whole, 10, 64)
	n *= unit
	for _, digit := range fraction {
		unit /= 10
		n += int64(digit-'0') * unit
	}
	return n, true
}

const centimeters = 100

// altitude takes meters, in centimeters from 100 km below the sea.
func (e *encoder) altitude() uint32 {
	const base, least, most = 10_000_000, -10_000_000, 4_284_967_295
	word := e.next()
	number, negative := strings.CutPrefix(strings.TrimSuffix(word, "m"), "-")
	n, ok := fixed(meters, number, centimeters)
	if negative {
		n = -n
	}
	if !ok || n < least || n > most {
		e.fail(word, "an altitude from -100000m to 42849672.95m")
	}
	return uint32(base + n) //nolint:gosec // bounded above
}

// precision takes meters, as a digit and a power of ten of centimeters: further digits are dropped.
func (e *encoder) precision() byte {
	word := e.next()
	n, ok := fixed(meters, strings.TrimSuffix(word, "m"), centimeters)
	if !ok || n/centimeters > 90_000_000 {
		e.fail(word, "a size or precision from 0m to 90000000m")
	}
	power := byte(0)
	for ; n > 9; power++ {
		n /= 10
	}
	return byte(n)<<4 | power //nolint:gosec // a digit
}

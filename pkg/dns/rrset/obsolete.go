package rrset

import (
	"encoding/hex"
	"net"
	"regexp"
	"strconv"
	"strings"
)

// protocols and services are words of WKS data that stand for numbers. BIND knows those of its machine: others are refused here.
var (
	protocols = map[string]int{"tcp": 6, "TCP": 6, "udp": 17, "UDP": 17}
	services  = map[string]int{
		"ftp-data": 20, "ftp": 21, "ssh": 22, "telnet": 23, "smtp": 25, "time": 37, "domain": 53, "tftp": 69, "gopher": 70, "finger": 79,
		"http": 80, "pop3": 110, "sunrpc": 111, "ident": 113, "auth": 113, "nntp": 119, "ntp": 123, "imap2": 143, "imap": 143, "snmp": 161, "https": 443,
	}
)

// named takes a number or a word that stands for one, and writes nothing.
func (e *encoder) named(words map[string]int, bound uint64, fold func(string) string) uint64 {
	if len(e.words) > 0 {
		if number, known := words[fold(e.words[0])]; known {
			e.words[0] = strconv.Itoa(number)
		}
	}
	return e.numberBelow(bound)
}

// ports takes an address, a protocol and the ports of services, and writes a bit for each port up to the last one (RFC 1035 section 3.4.2).
func (e *encoder) ports() {
	const numbers, all, bits = 1 << 8, 1 << 16, 8
	e.out = append(e.out, e.ipv4()...)
	e.out = append(e.out, byte(e.named(protocols, numbers, strings.Clone))) //nolint:gosec // bounded above
	var found []byte
	for e.err == nil && len(e.words) > 0 {
		port := int(e.named(services, all, strings.ToLower)) //nolint:gosec // bounded above
		if missing := port/bits + 1 - len(found); missing > 0 {
			found = append(found, make([]byte, missing)...)
		}
		found[port/bits] |= 0x80 >> (port % bits)
	}
	e.out = append(e.out, found...)
}

// checkPorts checks the bytes of a WKS record.
func checkPorts(raw []byte) error {
	const head = net.IPv4len + 1
	if len(raw) > head && raw[len(raw)-1] == 0 {
		return errNotItsBytes
	}
	return layout{head: head, rest: true}.check(raw)
}

// prefix takes the length of a prefix, an address, and the name that has the prefix (RFC 2874 section 3.1). The bits of the prefix are
// not sent.
func (e *encoder) prefix() {
	const longest, bits = 8 * net.IPv6len, 8
	length := e.numberBelow(longest + 1)
	e.out = append(e.out, byte(length)) //nolint:gosec // bounded above
	if length < longest {
		suffix := e.ipv6()[length/bits:]
		suffix[0] &= 0xff >> (length % bits)
		e.out = append(e.out, suffix...)
	}
	if length > 0 {
		e.name()
	}
}

// checkPrefix checks the bytes of an A6 record.
func checkPrefix(raw []byte) error {
	const longest, bits = 8 * net.IPv6len, 8
	if len(raw) == 0 || raw[0] > longest || raw[0] < longest && len(raw) > 1 && raw[1]&^(0xff>>(raw[0]%bits)) != 0 {
		return errNotItsBytes
	}
	return layout{head: 1 + net.IPv6len - int(raw[0]/bits), name: raw[0] > 0}.check(raw)
}

// endSystem takes an ATM address: hexadecimal digits, or + and a telephone number, with dots between digits.
func (e *encoder) endSystem() {
	word := e.next()
	digits := strings.ReplaceAll(word, ".", "")
	raw, err := hex.DecodeString(digits)
	switch {
	case telephoneNumber.MatchString(word):
		e.out = append(append(e.out, 1), digits[1:]...)
	case err == nil && dottedDigits.MatchString(word):
		e.out = append(append(e.out, 0), raw...)
	default:
		e.fail(word, "hexadecimal digits as in 39.246f00, nor + and a telephone number")
	}
}

var (
	telephoneNumber = regexp.MustCompile(`^\+[0-9]+(\.[0-9]+)*$`)
	dottedDigits    = regexp.MustCompile(`^[0-9A-Fa-f]+(\.[0-9A-Fa-f]+)*$`)
)

// checkEndSystem checks the bytes of an ATM address.
func checkEndSystem(raw []byte) error {
	const telephone = 1
	if len(raw) > 0 && raw[0] == telephone && strings.Trim(string(raw[1:]), "0123456789") != "" {
		return errNotItsBytes
	}
	return layout{head: 2, rest: true}.check(raw)
}

// checkNumber checks the bytes of an ISDN record: an address, and a subaddress if there is one (RFC 1183 section 3.2).
func checkNumber(raw []byte) error {
	if len(raw) > 0 && len(raw) == 1+int(raw[0]) {
		return nil
	}
	return layout{strings: 2}.check(raw)
}

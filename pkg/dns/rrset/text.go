package rrset

import (
	"errors"
	"fmt"
	"strings"
)

// Limits in bytes: a character string (RFC 1035 section 3.3) and an RR's rdata.
const (
	maxString = 255
	maxRdata  = 65535
)

// TXT makes canonical rdata of a TXT record with the given strings, which are raw bytes and not escaped in any way. A string of more than
// 255 bytes is split after every 255th. Another split of the same text is different rdata: resolvers join the strings, servers keep them
// apart.
func TXT(strs ...string) (string, error) {
	if len(strs) == 0 {
		return "", errors.New("a TXT record needs at least one string, which may be empty")
	}
	var out []byte
	size := 0
	for _, s := range strs {
		for first := true; first || s != ""; first = false {
			part := s[:min(len(s), maxString)]
			s = s[len(part):]
			size += 1 + len(part)
			if len(out) > 0 {
				out = append(out, ' ')
			}
			out = appendQuoted(out, part)
		}
	}
	if size > maxRdata {
		return "", fmt.Errorf("the strings take %d bytes; a record has at most %d", size, maxRdata)
	}
	return string(out), nil
}

// appendQuoted appends raw bytes in quotes, escaped as miekg/dns escapes strings from the network.
func appendQuoted(out []byte, raw string) []byte {
	out = append(out, '"')
	for i := range len(raw) {
		switch c := raw[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ' || c > '~':
			out = appendDDD(out, c)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

// isVerbatim is true for a string that needs no escapes in quotes.
func isVerbatim(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// ParseStrings reads character strings in presentation form (RFC 1035 section 5.1), in quotes or separated by blanks, into
// raw bytes. They may be of any length.
func ParseStrings(s string) ([]string, error) {
	var strs []string
	for s = strings.TrimLeft(s, " \t"); s != ""; s = strings.TrimLeft(s, " \t") {
		raw, n, err := nextString(s)
		if err != nil {
			return nil, err
		}
		if strs, s = append(strs, raw), s[n:]; s != "" && s[0] != ' ' && s[0] != '\t' {
			return nil, fmt.Errorf("%q follows a string without a blank between them", Shorten(s))
		}
	}
	return strs, nil
}

// nextString reads the character string at the beginning of s. It returns its raw bytes and how many characters it takes.
func nextString(s string) (raw string, n int, err error) {
	i, quoted := 0, s[0] == '"'
	if quoted {
		i++
	}
	var out []byte
	for i < len(s) {
		switch c := s[i]; {
		case c == '"' && quoted:
			return string(out), i + 1, nil
		case c == '"':
			return "", 0, fmt.Errorf(`%q has a quote inside a string; write \"`, Shorten(s))
		case !quoted && (c == ' ' || c == '\t'):
			return string(out), i, nil
		case c == '\\':
			b, taken, err := unescape(s, i)
			if err != nil {
				return "", 0, err
			}
			out, i = append(out, b), i+taken
		default:
			out, i = append(out, c), i+1
		}
	}
	if quoted {
		return "", 0, fmt.Errorf("%q has no closing quote", Shorten(s))
	}
	return string(out), i, nil
}

package rrset

import (
	"fmt"
	"strings"
)

// unescape reads the escape that begins at s[i]: \DDD or \ and a character. It returns the byte and the length of the
// escape.
func unescape(s string, i int) (c byte, n int, err error) {
	rest := s[i+1:]
	switch {
	case rest == "":
		return 0, 0, fmt.Errorf(`%q ends in a single "\"; write "\\" for the character itself`, Shorten(s))
	case !isDigit(rest[0]):
		return rest[0], 2, nil
	case len(rest) < 3 || !isDigit(rest[1]) || !isDigit(rest[2]):
		return 0, 0, fmt.Errorf(`%q has an escape "\%c" without three digits (\000 to \255)`, Shorten(s), rest[0])
	}
	v := int(rest[0]-'0')*100 + int(rest[1]-'0')*10 + int(rest[2]-'0')
	if v > 255 {
		return 0, 0, fmt.Errorf(`%q has the escape \%s; escapes go from \000 to \255`, Shorten(s), rest[:3])
	}
	return byte(v), 4, nil //nolint:gosec // checked above
}

func appendDDD(out []byte, c byte) []byte {
	return append(out, '\\', '0'+c/100, '0'+c/10%10, '0'+c%10)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// Shorten truncates a quoted text so that messages stay readable, whatever they quote.
func Shorten(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most-3] + "..."
	}
	return s
}

// decodeEscaped decodes a string whose special characters are escaped to raw bytes; a stray "\" at the end is dropped, as miekg/dns does
// when it packs.
func decodeEscaped(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			out, i = append(out, s[i]), i+1
			continue
		}
		if i+1 == len(s) {
			break
		}
		c, n, err := unescape(s, i)
		if err != nil { // Not three digits: miekg/dns takes the character itself.
			c, n = s[i+1], 2
		}
		out, i = append(out, c), i+n
	}
	return string(out)
}

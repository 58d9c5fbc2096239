package masterfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Limits of RFC 1035 section 2.3.4, in bytes.
const (
	maxLabel = 63
	maxName  = 255
)

// name is a complete name. Its text keeps upper and lower case, by which BIND tells runs of records apart.
type name struct {
	text string
	// size is the length in bytes on the wire.
	size int
}

// canonical is the name in the form of rrset.CanonicalName.
func (n name) canonical() string {
	canonical, err := rrset.CanonicalName(n.text)
	if err != nil { // parseName lets nothing pass that CanonicalName refuses.
		return n.text
	}
	return canonical
}

// spelled is the name in the form of rrset.SpelledName.
func (n name) spelled() string {
	spelled, err := rrset.SpelledName(n.text)
	if err != nil {
		return n.text
	}
	return spelled
}

// otherThanCanonical is the spelled name, empty if that is the canonical one.
func (n name) otherThanCanonical() string {
	if strings.ToLower(n.text) == n.text {
		return ""
	}
	return n.spelled()
}

// parseName reads a name (RFC 1035 section 5.1): "@" is the origin, and a name without a dot at its end is relative to the origin.
func parseName(text string, origin name) (name, error) {
	switch text {
	case "":
		return name{}, errors.New("a name is empty")
	case "@":
		return origin, nil
	case ".":
		return name{text, 1}, nil
	}
	out, size, label := make([]byte, 0, len(text)+len(origin.text)+1), 1, 0
	for i := 0; i < len(text); {
		c, n, err := nameByte(text, i, label == 0)
		if err != nil {
			return name{}, err
		}
		i, size = i+n, size+1
		if c == '.' && n == 1 {
			if label == 0 {
				return name{}, fmt.Errorf("the name %q has an empty label", text)
			}
			out, label = append(out, '.'), 0
			continue
		}
		if label++; label > maxLabel {
			return name{}, fmt.Errorf("the name %q has a label of more than %d bytes", text, maxLabel)
		}
		out = appendNameByte(out, c)
	}
	if label > 0 { // It is relative; its last label's length comes on top, and the origin has the root's.
		size += origin.size
		if out = append(out, '.'); origin.text != "." {
			out = append(out, origin.text...)
		}
	}
	if size > maxName {
		return name{}, fmt.Errorf("the name %q has more than %d bytes with the origin %s", text, maxName, origin.text)
	}
	return name{string(out), size}, nil
}

// nameByte reads a byte of a name, escaped or not, and returns how many characters it takes.
func nameByte(text string, i int, first bool) (c byte, n int, err error) {
	if text[i] != '\\' {
		return text[i], 1, nil
	}
	if first && i+1 < len(text) && text[i+1] == '[' {
		return 0, 0, fmt.Errorf(`the name %q begins a label with "\[", which was for bit strings (RFC 6891 section 5)`, text)
	}
	return unescape(text, i)
}

// unescape reads \DDD or \ and another character, and returns how many characters that takes.
func unescape(text string, i int) (c byte, n int, err error) {
	rest := text[i+1:]
	switch {
	case rest == "":
		return 0, 0, fmt.Errorf(`%q ends in a single "\"`, text)
	case !isDigit(rest[0]):
		return rest[0], 2, nil
	case len(rest) < 3 || !isDigit(rest[1]) || !isDigit(rest[2]):
		return 0, 0, fmt.Errorf(`%q has an escape without three digits`, text)
	}
	value := int(rest[0]-'0')*100 + int(rest[1]-'0')*10 + int(rest[2]-'0')
	if value > 255 {
		return 0, 0, fmt.Errorf(`%q has the escape \%s; they end at \255`, text, rest[:3])
	}
	return byte(value), 4, nil //nolint:gosec // checked above
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func appendNameByte(out []byte, c byte) []byte {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', isDigit(c), c == '-', c == '_', c == '*', c == '/':
		return append(out, c)
	}
	return appendDDD(out, c)
}

func appendDDD(out []byte, c byte) []byte {
	return append(out, '\\', '0'+c/100, '0'+c/10%10, '0'+c%10)
}

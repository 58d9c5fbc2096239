package rrset

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Limits of RFC 1035 section 2.3.4, in bytes. A name's length counts a length byte for each label and the root's.
const (
	maxLabel = 63
	maxName  = 255
)

// plain holds the bytes that a canonical name has unescaped. All others are escaped as BIND prints them:
// `\` before one of ".;()@$\, three decimal digits (\DDD) for what is not printable ASCII.
var plain = func() (t [256]bool) {
	for c := '!'; c <= '~'; c++ {
		t[c] = !strings.ContainsRune(`".;()@$\`, c) && (c < 'A' || c > 'Z')
	}
	return t
}()

// CanonicalName brings a complete name into the one form that this project compares and stores: absolute with the final dot, lower case
// (RFC 4343), escapes as BIND prints them. A missing final dot is added: the name is never taken as relative to anything. Labels of 1 to
// 63 bytes, 255 bytes in all. Characters that DNS allows but that nobody means in a name, such as spaces, must be written as escapes; a
// name with characters outside ASCII is an error, which has its xn-- form (RFC 5891). The first label of a service instance name, such as
// "Büro 2._ipp._tcp.example.com", is text for people: UTF-8 that stands for its own bytes, blanks included (RFC 6763 section 4.1).
func CanonicalName(name string) (string, error) { return formatName(name, lowerCase) }

// SpelledName does what CanonicalName does, but keeps upper and lower case: servers are sent the name as its author spells it (RFC 4343
// section 4.1).
func SpelledName(name string) (string, error) {
	return formatName(name, func(c byte) byte { return c })
}

func formatName(name string, spell func(byte) byte) (string, error) {
	if isCanonical(name) {
		return name, nil
	}
	labels, err := parseName(name)
	if err != nil {
		return "", err
	}
	out := make([]byte, 0, len(name)+1)
	for _, label := range labels {
		for _, c := range label {
			out = appendNameByte(out, spell(c))
		}
		out = append(out, '.')
	}
	if len(labels) == 0 {
		return ".", nil
	}
	return string(out), nil
}

// isCanonical recognizes a name that needs no change and has no escapes, as nearly all do. It does not allocate.
func isCanonical(name string) bool {
	if len(name) > maxName-1 || name == "" || name[len(name)-1] != '.' {
		return false
	}
	label := 0
	for i := range len(name) {
		switch c := name[i]; {
		case c == '.':
			if (label == 0 && len(name) > 1) || label > maxLabel {
				return false
			}
			label = 0
		case !plain[c]:
			return false
		default:
			label++
		}
	}
	return true
}

// parseName splits a name in presentation form into its labels, decoded. The root has none.
func parseName(name string) ([][]byte, error) {
	switch name {
	case "":
		return nil, errors.New("the name is empty")
	case ".":
		return nil, nil
	}
	name = escapeInstance(name)
	if err := checkASCII(name); err != nil {
		return nil, err
	}
	var labels [][]byte
	label, total := make([]byte, 0, len(name)), 1
	end := func() error {
		if err := checkLabel(name, label); err != nil {
			return err
		}
		labels, total = append(labels, label), total+len(label)+1
		label = label[len(label):] // The labels share one array: none is appended to once it is complete.
		return nil
	}
	for i := 0; i < len(name); {
		c, n, err := nameByte(name, i)
		if err != nil {
			return nil, err
		}
		i += n
		if c != '.' || n > 1 {
			label = append(label, c)
			if i < len(name) {
				continue
			}
		}
		if err := end(); err != nil {
			return nil, err
		}
	}
	if total > maxName {
		return nil, fmt.Errorf("%q is %d bytes long; a name has at most %d (RFC 1035 section 2.3.4)", Shorten(name), total, maxName)
	}
	return labels, nil
}

// escapeInstance escapes blanks and the bytes of UTF-8 in the first label of a service instance name: these are labels for people
// (RFC 6763 section 4.1.1), and neither host names nor for IDNA (section 4.1.3).
func escapeInstance(name string) string {
	end := firstDot(name)
	if strings.IndexFunc(name[:end], needsEscape) < 0 || !isServiceType(name[end:]) || !utf8.ValidString(name[:end]) {
		return name
	}
	out := make([]byte, 0, len(name)+16)
	for i := 0; i < end; i++ {
		switch c := name[i]; {
		case c == '\\' && i+1 < end: // What is escaped already stays.
			out = append(out, c, name[i+1])
			i++
		case needsEscape(rune(c)):
			out = appendDDD(out, c)
		default:
			out = append(out, c)
		}
	}
	return string(append(out, name[end:]...))
}

func needsEscape(c rune) bool { return c == ' ' || c >= 0x80 }

// firstDot is the index of the first dot that is not escaped, or the length of the name.
func firstDot(name string) int {
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '\\':
			i++
		case '.':
			return i
		}
	}
	return len(name)
}

// isServiceType is true for names that go on with a service and a protocol, as ._ipp._tcp (RFC 6763 section 7).
func isServiceType(rest string) bool {
	labels := strings.SplitN(strings.ToLower(rest), ".", 4)
	return len(labels) >= 3 && strings.HasPrefix(labels[1], "_") && (labels[2] == "_tcp" || labels[2] == "_udp")
}

func checkLabel(name string, label []byte) error {
	switch {
	case len(label) == 0:
		return fmt.Errorf("%q has an empty label: no dot at the beginning, no two dots in a row", Shorten(name))
	case len(label) > maxLabel:
		return fmt.Errorf("label %q is %d bytes long; a label has at most %d (RFC 1035 section 2.3.4)",
			Shorten(string(label)), len(label), maxLabel)
	}
	return nil
}

// nameByte reads one byte of a name, escaped or not. It returns the byte and how many characters it takes.
func nameByte(name string, i int) (c byte, n int, err error) {
	c = name[i]
	switch {
	case c == '\\':
		return unescape(name, i)
	case c == '.' || plain[c] || c == '$' || (c >= 'A' && c <= 'Z'):
		return c, 1, nil
	}
	return 0, 0, fmt.Errorf("%q contains the character %q, which is not allowed in names; write \\%03d if it is really meant", Shorten(name), c, c)
}

func appendNameByte(out []byte, c byte) []byte {
	switch {
	case plain[c], c >= 'A' && c <= 'Z':
		return append(out, c)
	case c > ' ' && c <= '~':
		return append(out, '\\', c)
	}
	return appendDDD(out, c)
}

func lowerCase(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// toASCII maps as browsers do, without the host name rules that would refuse "_".
var toASCII = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false))

// checkASCII refuses names that are not ASCII; the error has the form to write instead.
func checkASCII(name string) error {
	for i := range len(name) {
		if name[i] < 0x80 {
			continue
		}
		if ascii, err := toASCII.ToASCII(name); err == nil {
			return fmt.Errorf("%q is not ASCII; write %q, its form in DNS (RFC 5891)", Shorten(name), ascii)
		}
		return fmt.Errorf("%q is not ASCII; write its xn-- form (RFC 5891)", Shorten(name))
	}
	return nil
}

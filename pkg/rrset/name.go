package rrset

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/idna"
)

// Limits of RFC 1035 section 2.3.4, in bytes. A name's length counts a length byte for each label and the root's.
const (
	maxLabel = 63
	maxName  = 255
)

// plain holds the bytes that stand for themselves in a canonical name. All others are escaped as BIND prints them:
// `\` before one of ".;()@$\, three decimal digits (\DDD) for what is not printable ASCII.
var plain = func() (t [256]bool) {
	for c := '!'; c <= '~'; c++ {
		t[c] = !strings.ContainsRune(`".;()@$\`, c) && (c < 'A' || c > 'Z')
	}
	return t
}()

// CanonicalName gives a complete name in the one form that this project compares and stores: absolute with the final
// dot, lower case (RFC 4343), escapes as BIND prints them. A missing final dot is added: the name is never taken as
// relative to anything. Labels of 1 to 63 bytes, 255 bytes in all. Characters that DNS allows but that nobody means in
// a name, such as spaces, have to be written as escapes; a name with characters outside ASCII is refused with its
// xn-- form (RFC 5891).
func CanonicalName(name string) (string, error) {
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
			out = appendNameByte(out, c)
		}
		out = append(out, '.')
	}
	if len(labels) == 0 {
		return ".", nil
	}
	return string(out), nil
}

// isCanonical recognises names that need no change and hold no escapes, which are nearly all, without allocating.
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

// parseName splits a name in presentation form into its labels, decoded and in lower case. The root has none.
func parseName(name string) ([][]byte, error) {
	switch name {
	case "":
		return nil, errors.New("the name is empty")
	case ".":
		return nil, nil
	}
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
			label = append(label, lower(c))
			if i < len(name) {
				continue
			}
		}
		if err := end(); err != nil {
			return nil, err
		}
	}
	if total > maxName {
		return nil, fmt.Errorf("%q is %d bytes long; a name has at most %d (RFC 1035 section 2.3.4)", shorten(name), total, maxName)
	}
	return labels, nil
}

func checkLabel(name string, label []byte) error {
	switch {
	case len(label) == 0:
		return fmt.Errorf("%q has an empty label: no dot at the beginning, no two dots in a row", shorten(name))
	case len(label) > maxLabel:
		return fmt.Errorf("label %q is %d bytes long; a label has at most %d (RFC 1035 section 2.3.4)",
			shorten(string(label)), len(label), maxLabel)
	}
	return nil
}

// nameByte reads one byte of a name, escaped or not, and tells how many characters it took.
func nameByte(name string, i int) (c byte, n int, err error) {
	c = name[i]
	switch {
	case c == '\\':
		return unescape(name, i)
	case c == '.' || plain[c] || c == '$' || (c >= 'A' && c <= 'Z'):
		return c, 1, nil
	}
	return 0, 0, fmt.Errorf("%q has the character %q, which names do not have; write \\%03d if it is really meant", shorten(name), c, c)
}

// unescape reads the escape that begins at s[i]: \DDD or \ and a character.
func unescape(s string, i int) (c byte, n int, err error) {
	rest := s[i+1:]
	switch {
	case rest == "":
		return 0, 0, fmt.Errorf(`%q ends in a single "\"; write "\\" for the character itself`, shorten(s))
	case !isDigit(rest[0]):
		return rest[0], 2, nil
	case len(rest) < 3 || !isDigit(rest[1]) || !isDigit(rest[2]):
		return 0, 0, fmt.Errorf(`%q has an escape "\%c" without three digits (\000 to \255)`, shorten(s), rest[0])
	}
	v := int(rest[0]-'0')*100 + int(rest[1]-'0')*10 + int(rest[2]-'0')
	if v > 255 {
		return 0, 0, fmt.Errorf(`%q has the escape \%s; escapes go from \000 to \255`, shorten(s), rest[:3])
	}
	return byte(v), 4, nil
}

func appendNameByte(out []byte, c byte) []byte {
	switch {
	case plain[c]:
		return append(out, c)
	case c > ' ' && c <= '~':
		return append(out, '\\', c)
	}
	return appendDDD(out, c)
}

func appendDDD(out []byte, c byte) []byte {
	return append(out, '\\', '0'+c/100, '0'+c/10%10, '0'+c%10)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// toASCII maps as browsers do, without the host name rules that would refuse "_".
var toASCII = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false))

// checkASCII refuses names in other scripts and shows how DNS spells them.
func checkASCII(name string) error {
	for i := range len(name) {
		if name[i] < 0x80 {
			continue
		}
		if ascii, err := toASCII.ToASCII(name); err == nil {
			return fmt.Errorf("%q is not ASCII; write %q, its form in DNS (RFC 5891)", shorten(name), ascii)
		}
		return fmt.Errorf("%q is not ASCII; write its xn-- form (RFC 5891)", shorten(name))
	}
	return nil
}

// shorten keeps messages readable whatever they quote.
func shorten(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most-3] + "..."
	}
	return s
}

// CompareNames orders canonical names as DNSSEC does (RFC 4034 section 6.1): label by label from the right, so that a
// name stands before those below it.
func CompareNames(a, b string) int {
	if a == b {
		return 0
	}
	if strings.IndexByte(a, '\\') >= 0 || strings.IndexByte(b, '\\') >= 0 {
		return compareEscaped(a, b)
	}
	// Skip what both end in; the labels that differ end at the last dot that both had.
	i, j := len(a), len(b)
	endA, endB := i, j
	for i > 0 && j > 0 && a[i-1] == b[j-1] {
		i, j = i-1, j-1
		if a[i] == '.' {
			endA, endB = i, j
		}
	}
	x := a[strings.LastIndexByte(a[:i], '.')+1 : endA]
	y := b[strings.LastIndexByte(b[:j], '.')+1 : endB]
	if c := strings.Compare(x, y); c != 0 {
		return c
	}
	return len(a) - len(b)
}

func compareEscaped(a, b string) int {
	x, errA := parseName(a)
	y, errB := parseName(b)
	if errA != nil || errB != nil {
		return strings.Compare(a, b) // Not canonical names: any stable order will do.
	}
	for i := 1; i <= len(x) && i <= len(y); i++ {
		if c := strings.Compare(string(x[len(x)-i]), string(y[len(y)-i])); c != 0 {
			return c
		}
	}
	return len(x) - len(y)
}

// IsSubdomain tells whether a canonical name is the other one or below it.
func IsSubdomain(name, ancestor string) bool {
	if ancestor == "." || name == ancestor {
		return true
	}
	cut := len(name) - len(ancestor)
	if cut < 2 || name[cut-1] != '.' || name[cut:] != ancestor {
		return false
	}
	escapes := 0
	for i := cut - 2; i >= 0 && name[i] == '\\'; i-- {
		escapes++
	}
	return escapes%2 == 0
}

// Parent is the canonical name without its first label; the root has no parent and gives "".
func Parent(name string) string {
	for i := 0; i < len(name); i++ {
		switch {
		case name[i] == '\\':
			i++
		case name[i] == '.' && i+1 < len(name):
			return name[i+1:]
		case name[i] == '.' && i > 0:
			return "."
		}
	}
	return ""
}

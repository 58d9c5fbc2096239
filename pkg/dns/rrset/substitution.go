package rrset

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// CheckSubstitution refuses the regexp of a NAPTR record if BIND does: it is empty, or !expression!replacement!flags (RFC 3402 section 3.2).
func CheckSubstitution(text string) error {
	if text == "" {
		return nil
	}
	parts, err := splitSubstitution(text)
	if err != nil {
		return err
	}
	expression, replacement := parts[0], parts[1]
	groups, err := countGroups(expression)
	if err != nil {
		return fmt.Errorf("the expression of its substitution, %q, is none: %w", Shorten(expression), err)
	}
	for i := 0; i+1 < len(replacement); i++ {
		if replacement[i] != '\\' {
			continue
		}
		i++
		if c := replacement[i]; c == '0' || c > '0' && c <= '9' && int(c-'0') > groups {
			return errors.New("the replacement refers to a group that the expression does not have")
		}
	}
	return nil
}

// splitSubstitution cuts a substitution at its first character, which is not escaped, into expression, replacement and flags.
func splitSubstitution(text string) (parts [3]string, err error) {
	delimiter := text[0]
	wrong := errors.New("the substitution is not !expression!replacement! (RFC 3402 section 3.2)")
	if strings.IndexByte("0123456789\\i\x00", delimiter) >= 0 || strings.IndexByte(text, 0) >= 0 {
		return parts, wrong
	}
	part := 0
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch {
		case c == delimiter && part == 2, part == 2 && c != 'i':
			return parts, wrong
		case c == delimiter:
			part++
			continue
		case c == '\\':
			if i++; i == len(text) {
				return parts, wrong
			}
			parts[part] += text[i-1 : i+1]
			continue
		}
		parts[part] += text[i : i+1]
	}
	if part != 2 {
		return parts, wrong
	}
	return parts, nil
}

// countGroups counts the groups of an extended regular expression of POSIX, as BIND reads it: "^" and "$" cannot be repeated, "\d" is a "d".
func countGroups(expression string) (int, error) {
	e := expressionReader{rest: expression}
	for e.rest != "" && e.err == nil {
		e.readPiece()
	}
	switch {
	case e.open > 0:
		e.fail("a parenthesis is not closed")
	case !e.atom:
		e.fail("it is empty, or ends in |")
	}
	return e.groups, e.err
}

// expressionReader takes an expression piece by piece.
type expressionReader struct {
	rest string
	// groups are those seen, open those not closed yet.
	groups, open int
	// atom is true behind what may be repeated, and repeated if it is already.
	atom, repeated bool
	// alternative is true in a group behind its "|".
	alternative bool
	// first is the last character in brackets, which begins a range if "-" follows.
	first int
	err   error
}

func (e *expressionReader) fail(text string) { e.err = cmp.Or(e.err, errors.New(text)) }

// skip takes n bytes.
func (e *expressionReader) skip(n int) { e.rest = e.rest[n:] }

func (e *expressionReader) readPiece() {
	c := e.rest[0]
	e.skip(1)
	switch c {
	case '[':
		e.readBracket()
	case '(':
		e.groups, e.open = e.groups+1, e.open+1
		e.atom, e.repeated, e.alternative = false, false, false
		return
	case ')':
		if e.open > 0 && !e.atom && e.alternative {
			e.fail("an alternative is empty")
		}
		e.open = max(e.open-1, 0)
	case '|':
		if !e.atom {
			e.fail("an alternative is empty")
		}
		e.atom, e.repeated, e.alternative = false, false, true
		return
	case '^', '$':
		e.atom, e.repeated = true, true
		return
	case '*', '+', '?':
		e.repeat()
		return
	case '{':
		if e.rest != "" && isDigit(e.rest[0]) {
			e.repeat()
			e.readBound()
			return
		}
	case '\\': // Something follows: splitSubstitution has seen to that.
		if c = e.rest[0]; c > '0' && c <= '9' && int(c-'0') > e.groups {
			e.fail("it refers to a group that is not there yet")
		}
		e.skip(1)
	}
	e.atom, e.repeated = true, false
}

func (e *expressionReader) repeat() {
	if !e.atom || e.repeated {
		e.fail("nothing is there to be repeated")
	}
	e.repeated = true
}

// readBound takes what is behind "{".
func (e *expressionReader) readBound() {
	const most = 255 // RE_DUP_MAX of POSIX
	bound, rest, closed := strings.Cut(e.rest, "}")
	least, greatest, _ := strings.Cut(bound, ",")
	low, okLow := parseBound(least)
	high, okHigh := parseBound(greatest)
	if !closed || !okLow || !okHigh || low > most || high > most || greatest != "" && low > high {
		e.fail(fmt.Sprintf("{ is followed by no bound up to {%d}", most))
	}
	e.rest = rest
}

// parseBound reads a number, which may be left out.
func parseBound(text string) (int, bool) {
	n := 0
	for i := range len(text) {
		if !isDigit(text[i]) {
			return 0, false
		}
		n = min(10*n+int(text[i]-'0'), 1<<16) //nolint:mnd // decimal; above all bounds
	}
	return n, true
}

// classes are the classes of characters that POSIX has.
var classes = []string{"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit"}

// Where a bracket expression is in a range: behind its end, and behind its "-".
const (
	afterRange = iota + 1
	inRange
)

// readBracket takes what is behind "[", with the "]" that closes it.
func (e *expressionReader) readBracket() {
	e.rest = strings.TrimPrefix(e.rest, "^")
	place := 0
	for seen := false; e.rest != "" && e.err == nil; seen = true {
		c := e.rest[0]
		switch {
		case c == ']' && seen:
			e.skip(1)
			return
		case c == '-' && seen && place == afterRange:
			e.fail("a range begins where another one ends")
		case c == '-' && seen && place == 0:
			place = inRange
			e.skip(1)
		case c == '[':
			place = e.readElement(place)
		default:
			if place == inRange && int(c) < e.first {
				e.fail("a range ends before it begins")
			}
			e.first, place = int(c), max(place-1, 0)
			e.skip(1)
		}
	}
	e.fail("a bracket is not closed")
}

// readElement takes "[" within brackets, and what belongs to it: a collating element, a class of equivalent characters, or one with a name.
func (e *expressionReader) readElement(place int) int {
	const several = 256 // more than any character
	e.skip(1)
	if e.rest == "" || strings.IndexByte(".=:", e.rest[0]) < 0 {
		return place
	}
	kind := e.rest[:1]
	element, rest, closed := strings.Cut(e.rest[1:], kind+"]")
	e.rest = rest
	switch {
	case !closed || element == "":
		e.fail("what [" + kind + " begins is empty or not closed")
	case kind == "." && len(element) > 1:
		e.first = several
	case kind == ".":
		e.first = int(element[0])
	case place == inRange:
		e.fail("a range ends in a class")
	case kind == ":" && !slices.Contains(classes, element):
		e.fail(fmt.Sprintf("%q is no class, such as [:digit:]", Shorten(element)))
	}
	if kind == "." {
		return max(place-1, 0)
	}
	return place
}

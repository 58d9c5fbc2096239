package rrset

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
)

// CheckSubstitution refuses the regexp of a NAPTR record if BIND does: it is empty, or !expression!replacement!flags (RFC 3402 section 3.2).
// The doubt is about an expression that BIND may refuse or not.
func CheckSubstitution(text string) (doubt, err error) {
	if text == "" {
		return nil, nil
	}
	parts, err := splitSubstitution(text)
	if err != nil {
		return nil, err
	}
	expression, replacement := parts[0], parts[1]
	groups, certain := countGroups(expression)
	switch broken := brokenExpression(expression); {
	case broken != nil:
		return nil, broken
	case !certain:
		return errors.New("the expression of its substitution is none that BIND certainly reads"), nil
	}
	for i := 0; i+1 < len(replacement); i++ {
		if replacement[i] != '\\' {
			continue
		}
		i++
		if c := replacement[i]; c == '0' || c > '0' && c <= '9' && int(c-'0') > groups {
			return nil, errors.New("the replacement refers to a group that the expression does not have")
		}
	}
	return nil, nil
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

var (
	// simpleBracket is a bracket expression without anything special.
	simpleBracket = regexp.MustCompile(`\[\^?(?:[0-9]-[0-9]|[a-z]-[a-z]|[A-Z]-[A-Z]|[A-Za-z0-9_.+*@]|\\[.@+*_])+\]`)
	// simpleBound follows an atom, as Go sees to.
	simpleBound = regexp.MustCompile(`\{[0-9]{1,2}(?:,[0-9]{0,2})?\}`)
	// doubtfulPair is what Go reads and BIND does not, or differently.
	doubtfulPair = regexp.MustCompile(`[\^$|(][*+?{]|\|[|)]|[(]\||^\||\|$|[\[\]{}]`)
)

// countGroups counts the groups of a POSIX expression; ok is false if the count may be wrong, or the expression uses more than the usual.
func countGroups(expression string) (groups int, ok bool) {
	parsed, err := syntax.Parse(expression, syntax.POSIX)
	plain := simpleBound.ReplaceAllString(simpleBracket.ReplaceAllString(expression, "x"), "+")
	if err != nil || expression == "" || doubtfulPair.MatchString(plain) {
		return 0, false
	}
	return parsed.MaxCap(), true
}

// brokenExpression is why nothing reads an expression. BIND takes a closing parenthesis alone.
func brokenExpression(expression string) error {
	_, err := syntax.Parse(expression, syntax.POSIX)
	var wrong *syntax.Error
	if !errors.As(err, &wrong) {
		return nil
	}
	switch wrong.Code {
	case syntax.ErrMissingParen, syntax.ErrMissingBracket, syntax.ErrMissingRepeatArgument, syntax.ErrTrailingBackslash:
		return errors.New("the expression of its substitution is none: " + wrong.Error())
	default:
		return nil
	}
}

package manifest

import (
	"strconv"
	"strings"
	"unicode"
)

// Printable escapes control characters as Go does: a line feed becomes \n. What a file holds must neither forge a line of a
// report nor command a terminal or a CI system.
func Printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

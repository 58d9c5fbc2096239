// Package spelling guesses what a mistyped name was meant to be, for messages that say what to write.
package spelling

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest returns the one of known names that a mistyped one was probably meant to be, "" if it is like none of them. Such names differ in few
// letters that follow each other, fewer than half of the longer one; upper and lower case count for nothing.
func Nearest(name string, known ...string) string {
	const few = 3
	likely := slices.DeleteFunc(slices.Clone(known), func(other string) bool {
		n := distance(name, other)
		return n > few || 2*n >= max(len(name), len(other))
	})
	if len(likely) == 0 {
		return ""
	}
	return slices.MinFunc(likely, func(a, b string) int {
		return cmp.Or(cmp.Compare(distance(name, a), distance(name, b)), cmp.Compare(a, b))
	})
}

// distance is how many letters of the longer name are left without what the two begin and end with alike.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return max(len(a), len(b))
}

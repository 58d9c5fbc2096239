package status

import (
	"fmt"
	"strings"
)

// Few is how many things of a kind a sentence names.
const Few = 3

// CountOf is a number with its noun: "1 zone", "2 zones".
func CountOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// JoinSome joins parts of a message with a separator: at most the first few, and how many more there are.
func JoinSome(parts []string, most int, separator string) string {
	if len(parts) <= most {
		return strings.Join(parts, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(parts[:most], separator), len(parts)-most)
}

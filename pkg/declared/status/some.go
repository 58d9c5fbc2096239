package status

import (
	"fmt"
	"strings"
)

// Few is how many things of a kind a sentence names.
const Few = 3

// JoinSome joins parts of a message with a separator: at most the first few, and how many more there are.
func JoinSome(parts []string, most int, separator string) string {
	if len(parts) <= most {
		return strings.Join(parts, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(parts[:most], separator), len(parts)-most)
}

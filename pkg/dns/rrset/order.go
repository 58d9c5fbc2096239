package rrset

import (
	"iter"
	"slices"
	"strings"
)

// CompareNames orders canonical names as DNSSEC does (RFC 4034 section 6.1): label by label from the right, so that a
// name sorts before those below it.
func CompareNames(a, b string) int {
	if a == b {
		return 0
	}
	if c, ok := compareSiblings(a, b); ok {
		return c
	}
	if strings.IndexByte(a, '\\') >= 0 || strings.IndexByte(b, '\\') >= 0 {
		return compareEscaped(a, b)
	}
	// Skip the common suffix; the labels that differ end at its first dot.
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

// compareSiblings is CompareNames for two names of the same parent, as most are, whose first labels have no escapes.
func compareSiblings(a, b string) (c int, ok bool) {
	i, j := strings.IndexByte(a, '.'), strings.IndexByte(b, '.')
	if i < 0 || j < 0 || a[i:] != b[j:] || strings.IndexByte(a[:i], '\\') >= 0 || strings.IndexByte(b[:j], '\\') >= 0 {
		return 0, false
	}
	return strings.Compare(a[:i], b[:j]), true
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

// IsSubdomain is true for a canonical name that equals ancestor or is below it.
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

// ParentName drops the first label of a canonical name; "" for the root.
func ParentName(name string) string {
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

// NamesUpFrom yields a canonical name and those above it, up to the root.
func NamesUpFrom(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := name; at != ""; at = ParentName(at) {
			if !yield(at) {
				return
			}
		}
	}
}

// NamesBelow yields a canonical name and those above it that are below a zone's own name.
func NamesBelow(zone, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := name; at != "" && at != zone && IsSubdomain(at, zone); at = ParentName(at) {
			if !yield(at) {
				return
			}
		}
	}
}

// InsertFirst inserts a key into the sorted list of the first n keys and drops what is beyond the nth. It changes the list.
func InsertFirst(first []Key, n int, key Key) []Key {
	full := len(first) == n
	if full && key.Compare(first[n-1]) > 0 {
		return first
	}
	i, _ := slices.BinarySearchFunc(first, key, Key.Compare)
	if full {
		first = first[:n-1]
	}
	return slices.Insert(first, i, key)
}

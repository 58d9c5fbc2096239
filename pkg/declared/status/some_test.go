package status

import "testing"

func TestJoinSome(t *testing.T) {
	for want, parts := range map[string][]string{
		"":                nil,
		"a":               {"a"},
		"a, b":            {"a", "b"},
		"a, b and 1 more": {"a", "b", "c"},
		"a, b and 2 more": {"a", "b", "c", "d"},
	} {
		if got := JoinSome(parts, 2, ", "); got != want {
			t.Errorf("JoinSome(%q) = %q, want %q", parts, got, want)
		}
	}
}

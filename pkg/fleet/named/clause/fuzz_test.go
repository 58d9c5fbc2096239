package clause

import (
	"strings"
	"testing"
)

// FuzzMatchList: no value of a list can end it, or begin a comment or a string that it does not end.
func FuzzMatchList(f *testing.F) {
	for _, seed := range []string{"any", "!10.0.0.1", "2001:db8::/32", "key x.", "acl:office", `key "a"`, "any; }; zone", "/* x", "10.0.0.0/8 // x", "fe80::1%eth0\"; }"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, element string) {
		text, err := MatchList("field", []string{element}, func(string) bool { return true })
		if err != nil {
			if !strings.Contains(err.Error(), "field") {
				t.Errorf("the error does not name the field: %v", err)
			}
			return
		}
		if inner, ok := strings.CutSuffix(text, "; "); !ok || strings.ContainsAny(inner, ";{}#*\\\n\r") || strings.Count(inner, `"`)%2 != 0 || strings.Contains(inner, "//") {
			t.Errorf("%q becomes %q", element, text)
		}
	})
}

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDefencesHaveTests: the tests that docs/security.md and docs/testing.md name exist, and each row about hostile providers, and about tests
// that were seen to fail, names one.
func TestDefencesHaveTests(t *testing.T) {
	tests, named := readTests(t), regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")
	for document, section := range map[string]string{"docs/security.md": "## Hostile providers\n", "docs/testing.md": "## Tests that were seen to fail\n"} {
		text, err := os.ReadFile(filepath.Join(Root, document))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if name := m[1]; len(tests[name]) == 0 && name != "TestName" && name != "TestParse" {
				t.Errorf("%s: there is no test %s", document, name)
			}
		}
		_, after, found := strings.Cut(string(text), section)
		if !found {
			t.Fatalf("%s has no section %q", document, section)
		}
		of, _, _ := strings.Cut(after, "\n## ")
		rows := regexp.MustCompile(`(?m)^\| .*\|$`).FindAllString(of, -1)
		if len(rows) < 10 {
			t.Errorf("%s has %d rows in %q", document, len(rows), section)
		}
		for _, row := range rows[1:] { // The first is the heading.
			if !named.MatchString(row) {
				t.Errorf("%s: no test is named in %s", document, row)
			}
		}
	}
}

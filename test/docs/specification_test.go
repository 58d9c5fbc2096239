package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const specification = "docs/specification.md"

// TestSpecification: each row of docs/specification.md names tests that exist. What is shown live has one that runs on a cluster or on real
// servers, what is done otherwise by choice has a decision.
func TestSpecification(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(Root, specification))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ([a-z0-9]+\.[0-9]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(string(text), -1)
	if len(rows) < 100 {
		t.Errorf("only %d rows were found", len(rows))
	}
	tests, name := readTests(t), regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	seen := map[string]bool{}
	for _, row := range rows {
		number, requirement, state, proof := row[1], row[2], row[3], row[4]
		if seen[number] {
			t.Errorf("%s: two rows", number)
		}
		seen[number] = true
		var folders []string
		for _, test := range name.FindAllStringSubmatch(proof, -1) {
			if tests[test[1]] == nil {
				t.Errorf("%s (%s): there is no test %s", number, requirement, test[1])
			}
			folders = append(folders, tests[test[1]]...)
		}
		isLive := slices.ContainsFunc(folders, func(folder string) bool {
			return strings.HasPrefix(folder, "test/integration") || strings.HasPrefix(folder, "test/e2e")
		})
		switch {
		case state == "live" && isLive, state == "real" && len(folders) > 0 && !isLive, state == "unit" && len(folders) > 0 && !isLive:
		case state == "by choice" && strings.Contains(proof, "](decisions/"):
		default:
			t.Errorf("%s (%s): %q is not %s", number, requirement, proof, state)
		}
	}
}

// readTests returns the folders in which each test is, by its name.
func readTests(t *testing.T) map[string][]string {
	t.Helper()
	declaration, tests := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`), map[string][]string{}
	for _, top := range []string{"apiserver", "cmd", "extensions", "pkg", "test", "webhook"} {
		err := filepath.WalkDir(filepath.Join(Root, top), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			folder, err := filepath.Rel(Root, filepath.Dir(path))
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range declaration.FindAllStringSubmatch(string(text), -1) {
				tests[m[1]] = append(tests[m[1]], folder)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return tests
}

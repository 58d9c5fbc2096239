package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const cases = "docs/cases.md"

// TestCases: each row of docs/cases.md names tests, all of which exist, as do the parts of them that it names. Each zone file that the import is
// tested with is there.
func TestCases(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(Root, cases))
	if err != nil {
		t.Fatal(err)
	}
	tests, rows, inDocument := readTests(t), 0, map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(string(text), -1) {
		if row[1] == "what happened" {
			continue
		}
		rows++
		named := regexp.MustCompile("`(?:([a-z]+)\\.)?(Test[A-Za-z0-9]+)(?:/([^`]+))?`").FindAllStringSubmatch(row[3], -1)
		if len(named) == 0 {
			t.Errorf("%q names no test", row[1])
		}
		if rest := strings.Trim(regexp.MustCompile("`[^`]+`").ReplaceAllString(row[3], ""), ", "); rest != "" {
			t.Errorf("%q: %q is no test", row[1], rest)
		}
		for _, m := range named {
			folders := slices.DeleteFunc(slices.Clone(tests[m[2]]), func(folder string) bool { return !strings.HasSuffix(folder, m[1]) })
			if len(folders) == 0 {
				t.Errorf("%q: there is no test %s", row[1], m[0])
			}
			if m[3] != "" && !slices.ContainsFunc(folders, func(folder string) bool { return hasPart(t, folder, m[3]) }) {
				t.Errorf("%q: %s has no part %q", row[1], m[2], m[3])
			}
			inDocument[m[2]+"/"+m[3]] = true
		}
	}
	if rows < 40 {
		t.Errorf("only %d rows were found", rows)
	}
	files, err := os.ReadDir(filepath.Join(Root, "extensions/zoneimport/testdata/bind"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !inDocument["TestNamedZoneFiles/"+file.Name()] {
			t.Errorf("%s does not name the zone file %s", cases, file.Name())
		}
	}
}

// hasPart reports whether a test in a folder has a part of a name, which is written there as it is.
func hasPart(t *testing.T, folder, part string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Root, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), strconv.Quote(part)+":") || strings.Contains(string(text), strconv.Quote(part)+" ") {
			return true
		}
	}
	return false
}

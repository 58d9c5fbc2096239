package docs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const specification = "docs/specification.md"

// rowsOf is how many rows each document of the specification has.
var rowsOf = map[string]int{"0": 31, "1": 23, "2": 91, "3": 68, "4": 78, "card": 16}

// states are what a row may say, in the order of the table that counts them.
var states = []string{"live", "real", "unit", "docs", "by choice"}

// onClusters are the folders whose tests run on a cluster.
var onClusters = []string{"test/attack", "test/e2e", "test/fault", "test/guides", "test/integration", "test/monitoring/live"}

// TestSpecification: docs/specification.md has each row of each document once, and counts them. Each names tests that exist: what is shown live
// has one that runs on a cluster, what is a document has a link to it, what is done otherwise by choice a decision.
func TestSpecification(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(Root, specification))
	if err != nil {
		t.Fatal(err)
	}
	tests, counts := readTests(t), map[string]int{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z0-9]+)\.([0-9]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(string(text), -1) {
		document, number, state := row[1], row[1]+"."+row[2], row[4]
		counts[document]++
		if want := fmt.Sprintf("%s.%d", document, counts[document]); number != want {
			t.Fatalf("row %s is where %s should be", number, want)
		}
		counts[document+" "+state]++
		counts["all "+state]++
		checkRow(t, tests, number+" ("+row[3]+")", state, row[5])
	}
	all := 0
	for document, want := range rowsOf {
		if counts[document] != want {
			t.Errorf("document %s has %d rows, want %d", document, counts[document], want)
		}
		all += want
	}
	counts["all"] = all
	for _, document := range append(slices.Sorted(maps.Keys(rowsOf)), "all") {
		line := fmt.Sprintf(" | %d |", counts[document])
		for _, state := range states {
			line += fmt.Sprintf(" %d |", counts[document+" "+state])
		}
		if !regexp.MustCompile(`(?m)^\| ` + document + `\b.*` + regexp.QuoteMeta(line) + `$`).Match(text) {
			t.Errorf("the table does not count document %s as it is:%s", document, line)
		}
	}
}

// checkRow checks what a row says against its proof: names of tests, of which one may begin with the end of its package's path.
func checkRow(t *testing.T, tests map[string][]string, row, state, proof string) {
	t.Helper()
	var folders []string
	for _, m := range regexp.MustCompile("`(?:([a-z0-9/]+)\\.)?(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(proof, -1) {
		found := slices.DeleteFunc(slices.Clone(tests[m[2]]), func(folder string) bool { return !strings.HasSuffix(folder, m[1]) })
		if len(found) == 0 {
			t.Errorf("%s: there is no test %s", row, m[0])
		}
		folders = append(folders, found...)
	}
	isLive := slices.ContainsFunc(folders, func(folder string) bool { return slices.Contains(onClusters, folder) })
	switch {
	case state == "live" && isLive, state == "real" && len(folders) > 0 && !isLive, state == "unit" && len(folders) > 0 && !isLive:
	case state == "docs" && strings.Contains(proof, ".md"):
	case state == "by choice" && strings.Contains(proof, "](decisions/"):
	default:
		t.Errorf("%s: %q is not %s", row, proof, state)
	}
}

// readTests returns the folders in which each test is, by its name.
func readTests(t *testing.T) map[string][]string {
	t.Helper()
	declaration, tests := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9]+)\(`), map[string][]string{}
	for name, text := range goFiles(t, true, slices.Concat(rooms, []string{"manifests", "test"})...) {
		for _, m := range declaration.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = append(tests[m[1]], filepath.Dir(name))
		}
	}
	return tests
}

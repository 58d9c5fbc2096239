package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestJourneys: the files of the journeys in docs/architecture.md exist. The first cell of a row has their packages, or is the file.
func TestJourneys(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(Root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, journeys, _ := strings.Cut(string(text), "### Journeys\n")
	journeys, _, _ = strings.Cut(journeys, "\n## ")
	row, name := regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \|$`), regexp.MustCompile("`([^`]+)`")
	seen := 0
	for _, cells := range row.FindAllStringSubmatch(journeys, -1) {
		folders := []string{""}
		for _, folder := range name.FindAllStringSubmatch(cells[1], -1) {
			folders = append(folders, folder[1])
		}
		for _, file := range name.FindAllStringSubmatch(cells[0], -1) {
			if !strings.HasSuffix(file[1], ".go") {
				continue
			}
			seen++
			exists := func(folder string) bool {
				_, err := os.Stat(filepath.Join(Root, folder, file[1]))
				return err == nil
			}
			if !slices.ContainsFunc(folders, exists) {
				t.Errorf("docs/architecture.md: %s: %s does not exist", cells[1], file[1])
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d files were found", seen)
	}
}

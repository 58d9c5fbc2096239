package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// journeyBounds are how many files the journeys of docs/architecture.md may have, in their order.
var journeyBounds = []int{15, 10, 4}

// TestJourneys: the journeys in docs/architecture.md have as many files as they say and no more than their bounds, and the files exist.
// The first cell of a row has their packages, or is the file.
func TestJourneys(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(Root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, journeys, _ := strings.Cut(string(text), "### Journeys\n")
	journeys, _, _ = strings.Cut(journeys, "\n## ")
	title := regexp.MustCompile(`(?m)^\*\*(From .+)\*\* \((\d+) files\)$`)
	found := title.FindAllStringSubmatchIndex(journeys, -1)
	if len(found) != len(journeyBounds) {
		t.Fatalf("%d journeys, want %d", len(found), len(journeyBounds))
	}
	for i, at := range found {
		rows := journeys[at[1]:]
		if i+1 < len(found) {
			rows = journeys[at[1]:found[i+1][0]]
		}
		name, says := journeys[at[2]:at[3]], journeys[at[4]:at[5]]
		files := filesOf(t, name, rows)
		if fmt.Sprint(files) != says {
			t.Errorf("%s: the page says %s files and lists %d", name, says, files)
		}
		if files > journeyBounds[i] {
			t.Errorf("%s: %d files, at most %d", name, files, journeyBounds[i])
		}
	}
}

// filesOf counts the files that the rows of a journey name.
func filesOf(t *testing.T, journey, rows string) (files int) {
	row, name := regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \|$`), regexp.MustCompile("`([^`]+)`")
	for _, cells := range row.FindAllStringSubmatch(rows, -1) {
		folders := []string{""}
		for _, folder := range name.FindAllStringSubmatch(cells[1], -1) {
			folders = append(folders, folder[1])
		}
		listed := cells[2]
		if strings.HasSuffix(folders[len(folders)-1], ".go") {
			listed, folders = cells[1], []string{""}
		}
		for _, file := range name.FindAllStringSubmatch(listed, -1) {
			if !strings.HasSuffix(file[1], ".go") {
				continue
			}
			files++
			exists := func(folder string) bool {
				_, err := os.Stat(filepath.Join(Root, folder, file[1]))
				return err == nil
			}
			if !slices.ContainsFunc(folders, exists) {
				t.Errorf("%s: %s does not exist", journey, file[1])
			}
		}
	}
	return files
}

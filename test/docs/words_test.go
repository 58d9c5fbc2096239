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

// oddWords are those that make a reader stop, each with what to write instead. Words of one concept are in the glossary.
var oddWords = map[string]string{
	`(?i)\bsuch (a )?ones?\b`:      "the noun",
	`(?i)\bis nothing that\b`:      "no … is",
	`(?i)\bmay be without an?\b`:   "may lack",
	`(?i)\bon its way out\b`:       "is being deleted",
	`(?i)\bis to be looked at\b`:   "is checked",
	`(?i)\b(to|the one) who has\b`: "whoever has, or the holder of",
	`%ses\[`:                       "both names of the field, which a user looks for",
	`\bsync "[^"]*/pkg/apis/sync/`: "the name syncv1",
}

// TestWords: code, comments and pages say things plainly.
func TestWords(t *testing.T) {
	odd := map[*regexp.Regexp]string{}
	for expression, better := range oddWords {
		odd[regexp.MustCompile(expression)] = better
	}
	for _, dir := range []string{"apiserver", "charts", "cmd", "docs", "extensions", "manifests", "pkg", "webhook", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"} {
		err := filepath.WalkDir(filepath.Join(Root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !slices.Contains([]string{".go", ".md", ".yaml"}, filepath.Ext(path)) {
				return err
			}
			text, err := os.ReadFile(path)
			for number, line := range strings.Split(string(text), "\n") {
				for expression, better := range odd {
					if found := expression.FindString(line); found != "" {
						t.Errorf("%s:%d: %q: write %s", path, number+1, found, better)
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

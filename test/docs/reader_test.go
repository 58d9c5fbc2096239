package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReader: each page says in the first line below its title for whom it is. Decisions are for contributors.
func TestReader(t *testing.T) {
	comment := regexp.MustCompile(`(?s)<!--.*?-->\s*`)
	for _, d := range Read(t) {
		if !strings.HasPrefix(d.Path, "docs/") || strings.HasPrefix(d.Path, "docs/decisions/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(Root, d.Path))
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(string(text), "\n")
		if !strings.HasPrefix(comment.ReplaceAllString(strings.TrimSpace(body), ""), "For ") {
			t.Errorf("%s does not begin with its readers (For …)", d.Path)
		}
	}
}

package acme

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/test/docs"
	"github.com/lockstep-dns/lockstep/test/kube"
)

const page = "docs/guides/acme.md"

func guide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(kube.Root(t), page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block returns the first block of the guide that has a text.
func block(t *testing.T, text string) string {
	t.Helper()
	for _, b := range docs.Parse(page, guide(t)).Blocks {
		if strings.Contains(b.Text, text) {
			return b.Text
		}
	}
	t.Fatalf("%s has no block with %q", page, text)
	return ""
}

var variable = regexp.MustCompile(`\b([A-Z0-9_]+)=(\S+)`)

// legoEnvironment sets the variables that the guide gives lego, but for the values of some.
func legoEnvironment(t *testing.T, values map[string]string) {
	t.Helper()
	for _, m := range variable.FindAllStringSubmatch(block(t, "lego run"), -1) {
		value, ok := values[m[1]]
		if !ok {
			value = m[2]
		}
		delete(values, m[1])
		t.Setenv(m[1], value)
	}
	for name := range values {
		t.Errorf("%s does not set %s", page, name)
	}
}

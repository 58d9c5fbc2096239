package docs

import (
	"path/filepath"
	"slices"
	"testing"
)

// notRunPages are the guides of which nothing runs on the dev cluster.
var notRunPages = []string{
	"cluster-api.md", "existing-servers.md", "external-dns.md", "from-bindy.md", "from-external-dns-rfc2136.md", "import.md", "troubleshooting.md", "ui.md",
	"vantages.md",
}

// mostNotRun is how many blocks of the other guides may be left out, all together.
const mostNotRun = 3

// TestNotRun lists what of the guides does not run, with the reasons, and bounds it.
func TestNotRun(t *testing.T) {
	leftOut := 0
	for _, d := range Read(t) {
		if filepath.Dir(d.Path) != "docs/guides" {
			continue
		}
		runs := 0
		for _, b := range d.Blocks {
			switch {
			case b.Runs():
				runs++
			case b.NotRun != "" && b.File() == "" && (b.Language == "sh" || b.Language == "console"):
				t.Logf("%s:%d: not run: %s", d.Path, b.Line, b.NotRun)
				if !slices.Contains(notRunPages, filepath.Base(d.Path)) {
					leftOut++
				}
			}
		}
		if listed := slices.Contains(notRunPages, filepath.Base(d.Path)); listed != (runs == 0) {
			t.Errorf("%s: %d blocks run; listed among the pages that do not: %t", d.Path, runs, listed)
		}
	}
	if leftOut > mostNotRun {
		t.Errorf("%d blocks are left out, more than %d: let them run, or raise the number for a reason", leftOut, mostNotRun)
	}
}

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOneWayOut: what follows from objects of tenants connects through package outbound, which decides where to and how often.
func TestOneWayOut(t *testing.T) {
	other := regexp.MustCompile(`net\.Dial|net\.Dialer|net\.DefaultResolver|net\.Lookup|http\.Get\(`)
	for _, room := range []string{"pkg/dns", "pkg/zone", "pkg/fleet/bindcar", "apiserver"} {
		err := filepath.WalkDir(filepath.Join(Root, room), func(path string, entry fs.DirEntry, err error) error {
			if entry.IsDir() && entry.Name() == "sidecar" { // It runs beside named, and reaches what named reaches.
				return fs.SkipDir
			}
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			if folder := filepath.Base(filepath.Dir(path)); folder == "outbound" {
				return nil
			}
			text, err := os.ReadFile(path)
			if found := other.Find(text); found != nil {
				t.Errorf("%s connects with %s: use pkg/dns/outbound", path, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

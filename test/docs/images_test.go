package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	bind "github.com/lockstep-dns/lockstep/pkg/fleet/named/releases"
)

// TestImageArchives: the archives that a reader is told to load are those that `make images` writes.
func TestImageArchives(t *testing.T) {
	made := []string{"lockstep", "lockstep-sidecar"}
	for _, release := range bind.Supported() {
		made = append(made, "lockstep-bind9-"+string(release))
	}
	archive, loop := regexp.MustCompile(`_output/images/(lockstep\S*)\.tar`), regexp.MustCompile(`for image in ([^;]+);`)
	seen := 0
	for _, d := range Read(t) {
		for _, b := range d.Blocks {
			var names []string
			for _, match := range archive.FindAllStringSubmatch(b.Text, -1) {
				names = append(names, match[1])
			}
			for _, match := range loop.FindAllStringSubmatch(b.Text, -1) {
				names = append(names, strings.Fields(match[1])...)
			}
			for _, name := range names {
				seen++
				if !slices.Contains(made, name) {
					t.Errorf("%s:%d: make images writes no %s.tar, but %s", b.Document, b.Line, name, strings.Join(made, ", "))
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d archives were found", seen)
	}
}

package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/lockstep-dns/lockstep/"

// TestFloors: a package imports packages of its own room and of lower floors only. The table of docs/architecture.md says which room is
// on which floor.
func TestFloors(t *testing.T) {
	floors := readFloors(t)
	roomOf := func(folder string) string {
		for room := range floors {
			if folder == room || strings.HasPrefix(folder, room+"/") {
				return room
			}
		}
		return ""
	}
	seen := map[string]bool{}
	for folder, imports := range productImports(t) {
		room := roomOf(folder)
		if room == "" {
			t.Errorf("%s is on no floor: add its room to the table in docs/architecture.md", folder)
			continue
		}
		seen[room] = true
		for imported := range imports {
			if other := roomOf(imported); other != room && floors[other] >= floors[room] {
				t.Errorf("%s (floor %d) imports %s (floor %d): a package imports its own room and lower floors only", folder, floors[room], imported, floors[other])
			}
		}
	}
	for room := range floors {
		if !seen[room] {
			t.Errorf("docs/architecture.md has a room %s that has no package", room)
		}
	}
}

// readFloors returns the floor of each room.
func readFloors(t *testing.T) map[string]int {
	text, err := os.ReadFile(filepath.Join(Root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	row, name := regexp.MustCompile(`(?m)^\| ([1-9]) \| ([^|]+) \|`), regexp.MustCompile("`([^`]+)`")
	floors := map[string]int{}
	for _, match := range row.FindAllStringSubmatch(string(text), -1) {
		floor, _ := strconv.Atoi(match[1])
		for _, room := range name.FindAllStringSubmatch(match[2], -1) {
			floors[room[1]] = floor
		}
	}
	return floors
}

// productImports returns what each package imports of the module, tests aside.
func productImports(t *testing.T) map[string]map[string]bool {
	imports := map[string]map[string]bool{}
	for name, text := range goFiles(t, false, slices.Concat(rooms, []string{"manifests"})...) {
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Dir(name)
		if imports[folder] == nil {
			imports[folder] = map[string]bool{}
		}
		for _, spec := range file.Imports {
			if imported, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); ok {
				imports[folder][imported] = true
			}
		}
	}
	return imports
}

// rooms are the folders with the product's code.
var rooms = []string{"apiserver", "cmd", "extensions", "pkg", "webhook"}

// goFiles yields the Go files below some folders by their names below the root: those of tests, or the others.
func goFiles(t *testing.T, tests bool, folders ...string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, folder := range folders {
			err := filepath.WalkDir(filepath.Join(Root, folder), func(path string, _ fs.DirEntry, err error) error {
				if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") != tests {
					return err
				}
				text, err := os.ReadFile(path)
				if name, _ := filepath.Rel(Root, path); err == nil && !yield(name, text) {
					return fs.SkipAll
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
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
	rooms := slices.Collect(maps.Keys(floors))
	roomOf := func(folder string) string {
		for _, room := range rooms {
			if folder == room || strings.HasPrefix(folder, room+"/") {
				return room
			}
		}
		return ""
	}
	seen := map[string]bool{}
	for folder, imports := range productImports(t, "apiserver", "cmd", "extensions", "manifests", "pkg", "webhook") {
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
	for _, room := range rooms {
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

// productImports returns what each package below the folders imports of the module, tests aside.
func productImports(t *testing.T, folders ...string) map[string]map[string]bool {
	imports := map[string]map[string]bool{}
	for _, top := range folders {
		err := filepath.WalkDir(filepath.Join(Root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			folder, err := filepath.Rel(Root, filepath.Dir(path))
			if err != nil {
				return err
			}
			if imports[folder] == nil {
				imports[folder] = map[string]bool{}
			}
			for _, spec := range file.Imports {
				if imported, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); ok {
					imports[folder][imported] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return imports
}

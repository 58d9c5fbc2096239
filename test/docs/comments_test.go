package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What a comment may name of this repository: a file, a test, and an exported field or method of an exported type or package.
var (
	namedFile   = regexp.MustCompile(`(?:[\w-]+/)*[\w-]+\.go\b`)
	namedTest   = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w+`)
	namedMember = regexp.MustCompile(`\b[A-Z]\w+\.([A-Z]\w+)\b`)
)

// elsewhere are files of other projects that comments name.
var elsewhere = []string{"plugin/backend_lookup.go"}

// TestCommentsNameWhatExists: a comment sends nobody to a file, a test, or a field or method that is not there any more.
func TestCommentsNameWhatExists(t *testing.T) {
	t.Parallel()
	files, identifiers := map[string]bool{}, map[string]bool{}
	comments := map[string][]string{}
	err := filepath.WalkDir(Root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (strings.HasPrefix(entry.Name(), "_") || entry.Name() != filepath.Base(Root) && strings.HasPrefix(entry.Name(), ".git")) {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		files[entry.Name()] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				identifiers[id.Name] = true
			}
			return true
		})
		if !ast.IsGenerated(file) {
			for _, group := range file.Comments {
				comments[path] = append(comments[path], group.Text())
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(comments)) {
		for _, comment := range comments[path] {
			for _, missing := range missingNames(comment, files, identifiers) {
				t.Errorf("%s: a comment names %s, which does not exist", path, missing)
			}
		}
	}
}

// missingNames returns what a comment names and is neither a file nor an identifier.
func missingNames(comment string, files, identifiers map[string]bool) (missing []string) {
	for _, name := range namedFile.FindAllString(comment, -1) {
		if !files[filepath.Base(name)] && !slices.Contains(elsewhere, name) {
			missing = append(missing, name)
		}
	}
	for _, name := range namedTest.FindAllString(comment, -1) {
		if !identifiers[name] {
			missing = append(missing, name)
		}
	}
	for _, match := range namedMember.FindAllStringSubmatch(comment, -1) {
		if !identifiers[match[1]] {
			missing = append(missing, match[0])
		}
	}
	return missing
}

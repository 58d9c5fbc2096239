package v1beta1_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// backquoted finds the fields that a row of a table names.
var backquoted = regexp.MustCompile("`([a-z][A-Za-z0-9.]*)(?:\\[\\])?`")

// TestFieldsOfBindy: every field that a manifest for Bindy can have is one here, too: kubectl apply refuses others. What its statuses have
// beyond ours is exactly what docs/reference/bindy.md says is absent.
func TestFieldsOfBindy(t *testing.T) {
	kinds := loadKinds(t)
	text, err := os.ReadFile("testdata/bindy_fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	missing, fields := map[string]bool{}, 0
	for line := range strings.Lines(string(text)) {
		kind, path, isField := strings.Cut(strings.TrimSpace(line), " ")
		if kind == "#" || !isField {
			continue
		}
		fields++
		k, known := kinds[kind]
		if !known {
			t.Fatalf("there is no kind %s", kind)
		}
		s := k.Definition.Spec.Versions[0].Schema.OpenAPIV3Schema
		switch has := hasField(s, strings.Split(path, ".")); {
		case !has && strings.HasPrefix(path, "spec."):
			t.Errorf("%s has no %s", kind, path)
		case !has:
			missing[path] = true
		}
	}
	if fields < 500 {
		t.Errorf("only %d fields were looked up", fields)
	}
	if diff := cmp.Diff(absentStatuses(t), slices.Sorted(maps.Keys(missing))); diff != "" {
		t.Errorf("absent in the document (-), absent in the definitions (+):\n%s", diff)
	}
}

// hasField reports whether a schema has a field; what follows a type of Kubernetes is part of that.
func hasField(s *apiextensionsv1.JSONSchemaProps, path []string) bool {
	for ; len(path) > 0; path = path[1:] {
		if s.Items != nil {
			s = s.Items.Schema
		}
		next, ok := s.Properties[path[0]]
		if !ok {
			return false
		}
		s = &next
	}
	return true
}

// absentStatuses returns the fields that the document's table of statuses calls absent, sorted.
func absentStatuses(t *testing.T) (paths []string) {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/reference/bindy.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.HasPrefix(strings.TrimSpace(cells[4]), "absent") {
			continue
		}
		for _, found := range backquoted.FindAllStringSubmatch(cells[2], -1) {
			paths = append(paths, found[1])
		}
	}
	slices.Sort(paths)
	return paths
}

package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const text = `# a comment
apiVersion: v1
kind: First
metadata: {name: one}
---
apiVersion: v1
kind: Second
spec:
  list:
  - a: 1
    b: yes
  - *nothing
---
values: of a chart
---
apiVersion: v1
kind: Third
spec:
  list:
  - a: 1
  -
    a: 2
  labels: {app.example.com/x: y,
    other: z}
  twice: &twice
    c: 3
  again: *twice
--- # the last
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Fourth
- {"apiVersion": "v1",
   "kind": "Fifth"}
`

func TestParse(t *testing.T) {
	objects, faults := Parse("f.yaml", []byte(text))
	var kinds []string
	for _, o := range objects {
		kinds = append(kinds, o.GetKind())
	}
	if diff := cmp.Diff([]string{"First", "Third", "Fourth", "Fifth"}, kinds); diff != "" {
		t.Fatalf("kinds (-want +got):\n%s", diff)
	}
	if len(faults) != 1 || faults[0].Line < 5 || faults[0].Line > 12 || !strings.Contains(faults[0].Message, "nothing") {
		t.Errorf("faults %+v", faults)
	}
	tests := []struct {
		object int
		field  string
		want   int
	}{
		{0, "", 2},
		{0, "metadata.name", 4},
		{1, "spec.list[0].a", 20},
		{1, "spec.list[1].a", 22},
		{1, "spec.list[1].missing.deep", 22},
		{1, "spec.list[7]", 19},
		{1, "spec.labels[app.example.com/x]", 23},
		{1, "spec.labels[other]", 24},
		{1, "spec.again.c", 26},
		{2, "kind", 33},
		{3, "kind", 35},
	}
	for _, tc := range tests {
		if got := objects[tc.object].Line(tc.field); got != tc.want {
			t.Errorf("%s of object %d is on line %d, want %d", tc.field, tc.object, got, tc.want)
		}
	}
}

func TestReadFolder(t *testing.T) {
	dir := t.TempDir()
	for name, kind := range map[string]string{"b.yaml": "B", "a/c.JSON": "C", "a/.git/d.yaml": "D", ".e.yaml": "E", "f.md": "F", "g.yml": "G"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(`{"apiVersion": "v1", "kind": "`+kind+`"}`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, special := range []func(string) error{
		func(name string) error { return syscall.Mkfifo(name, 0o644) }, // Nobody ever writes to it.
		func(name string) error { return os.Symlink("/dev/zero", name) },
		func(name string) error { return os.Symlink(dir, name) },
	} {
		name := filepath.Join(dir, fmt.Sprint("special-", i, ".yaml"))
		if err := special(name); err != nil {
			t.Fatal(err)
		}
	}
	objects, faults, err := Read(strings.NewReader("apiVersion: v1\nkind: H\n"), dir, Stdin)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	var kinds []string
	for _, o := range objects {
		kinds = append(kinds, o.GetKind())
	}
	if diff := cmp.Diff([]string{"C", "B", "G", "H"}, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if _, _, err := Read(nil, filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a file that does not exist is no error")
	}
}

func TestReadBoundsFiles(t *testing.T) {
	for text, good := range map[string]bool{"1234": true, "12345": false} {
		if read, err := readLimited(strings.NewReader(text), 4); (err == nil) != good || (good && string(read) != text) {
			t.Errorf("%q: %q, %v", text, read, err)
		}
	}
	if _, _, err := Read(nil, "/dev/zero"); err == nil || !strings.Contains(err.Error(), "split it") {
		t.Errorf("a file without an end: %v", err)
	}
}

// Whatever a file holds, reading it ends, and every line asked for is within it.
func FuzzParse(f *testing.F) {
	f.Add([]byte(text))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("---\n---\n{}"))
	f.Add([]byte("apiVersion: v1\nkind: List\nitems: &x\n- apiVersion: v1\n  kind: List\n  items: *x\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, _ := Parse("f", text)
		lines := strings.Count(string(text), "\n") + 1
		for _, o := range objects {
			if line := o.Line("spec.list[0].a"); line < 1 || line > lines {
				t.Errorf("line %d of %d", line, lines)
			}
		}
	})
}

package manifest

import (
	"encoding/binary"
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

// What a document is about that kubectl refuses is said at its line, and what it reads is read.
func TestFaults(t *testing.T) {
	const head = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n"
	utf16 := func(order func([]byte, uint16) []byte, text string) string {
		b := order(nil, 0xfeff)
		for _, r := range text {
			b = order(b, uint16(r))
		}
		return string(b)
	}
	for name, tc := range map[string]struct {
		text, fault string
		line, kinds int
	}{
		"two values of JSON":       {text: "\n{\"apiVersion\": \"v1\", \"kind\": \"A\"}\n{\"apiVersion\": \"v1\",\n\"kind\": \"B\"}\n\n---\n" + head + "spec: *x\n", kinds: 2, line: 10, fault: "unknown anchor 'x'"},
		"values side by side":      {text: `{"apiVersion":"v1","kind":"A"}{"apiVersion":"v1","kind":"B"}`, kinds: 2},
		"JSON that ends too early": {text: `{"apiVersion":"v1","kind":"A"}` + "\n" + `{"apiVersion":"v1",` + "\n", kinds: 1, line: 3, fault: "not YAML"},
		"YAML that looks like it":  {text: "{apiVersion: v1,\n kind: A,}\n", kinds: 1},
		"UTF-16, little-endian":    {text: utf16(binary.LittleEndian.AppendUint16, head+"---\n"+head), kinds: 2},
		"UTF-16, big-endian":       {text: utf16(binary.BigEndian.AppendUint16, head+"---\n"+head), kinds: 2},
		"joined files of Windows":  {text: "\ufeff" + head + "---\r\n\ufeff" + head + "--- # b\n\ufeff" + head + "spec: *x\n", kinds: 2, line: 12, fault: "unknown anchor 'x'"},
		"no kind":                  {text: "\napiVersion: v1\nspec: {}\n", line: 2, fault: "kind is missing"},
		"no version":               {text: "kind: A\nspec: {}\n", line: 1, fault: "apiVersion is missing"},
		"a list":                   {text: "# a\n- a\n", line: 2, fault: "no object"},
		"a text":                   {text: "hello\n", line: 1, fault: "no object"},
		"comments only":            {text: "# hello\n---\n"},
		"items that are none":      {text: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: A\n- hello\n", kinds: 1, line: 6, fault: "items[1] is no object"},
		"items that are no list":   {text: "apiVersion: v1\nkind: List\nitems:\n  a: b\n", line: 4, fault: "items is no list"},
		"items without a kind":     {text: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: A\n- metadata: {name: a}\n  spec: {}\n", kinds: 1, line: 6, fault: "kind is missing"},
		"items without a version":  {text: "apiVersion: v1\nkind: List\nitems:\n- kind: A\n- apiVersion: v1\n  kind: A\n", kinds: 1, line: 4, fault: "apiVersion is missing"},
		"items that merge":         {text: "apiVersion: v1\nkind: List\nitems:\n- &a {apiVersion: v1, kind: A}\n- {<<: *a, spec: {}}\n", kinds: 2},
		"a list of one kind":       {text: "apiVersion: v1\nkind: AList\nitems:\n- metadata: {name: a}\n- apiVersion: v1\n  kind: A\n", kinds: 2},
		"a kind without text":      {text: "apiVersion: v1\nkind: \"\"\n", line: 1, fault: "kind is missing"},
		"a merge":                  {text: head + "x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  a: 2\n", kinds: 1},
		"a merge and a duplicate":  {text: head + "x: &x {a: 1}\ny:\n  <<: *x\n  a: 2\n  a: 3\n", line: 8, fault: `key "a" already set`},
		"a duplicate":              {text: head + "kind: B\n", line: 4, fault: `key "kind" already set`},
		"a template":               {text: head + "spec:\n  a: {{ .x }}\n", line: 5, fault: "render it first"},
		"a condition":              {text: head + "{{- if .x }}\nspec: {}\n{{- end }}\n", line: 4, fault: "render it first"},
		"a directive":              {text: "%YAML 1.2\n---\n" + head, kinds: 1, line: 1, fault: "%YAML: remove the line"},
		"an unknown anchor":        {text: head + "spec:\n  a: b\n  c: *x\n", line: 6, fault: "not YAML: unknown anchor 'x'"},
		"Latin-1":                  {text: head + "spec:\n  a: b\xfccher\n", line: 5, fault: "not UTF-8"},
		"a control character":      {text: head + "spec:\n  a: b\x00\n", line: 5, fault: "control characters"},
		"a map for a key":          {text: head + "spec:\n  ? {a: b}\n  : c\n", line: 5, fault: "where a key should be"},
		"text behind a separator":  {text: head + "--- {apiVersion: v1, kind: B}\n--- # c\n" + head, kinds: 2, line: 4, fault: "nothing but a comment behind ---"},
		"a line that stands out":   {text: head + "---\n" + head + "spec:\n  a: b\n c: d\n", kinds: 1, line: 10, fault: "did not find expected key"},
		"a quote that goes on":     {text: "# a\n" + head + "spec:\n  a: \"b\n  c: \"d\"\n", line: 7, fault: "did not find expected key"},
		"a list that goes on":      {text: "# a\n" + head + "spec:\n  a: [b,\n    c\n  d: e\n", line: 8, fault: "did not find expected"},
		"a quote without an end":   {text: "# a\n" + head + "spec:\n  a: \"b\n  c: d\n", line: 6, fault: "unexpected end of stream"},
		"a key without a colon":    {text: "# a\n" + head + "spec:\n  a: b\n  c\n  d: e\n", line: 7, fault: "could not find expected ':'"},
		"encrypted by SOPS":        {text: head + "spec:\n  a: b\n  c: [ENC[x,y:z]]\n", line: 6, fault: "did not find expected ',' or ']'"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, faults := parse("f", []byte(tc.text), true)
			if len(objects) != tc.kinds {
				t.Errorf("%d objects, want %d", len(objects), tc.kinds)
			}
			if tc.fault == "" {
				if len(faults) > 0 {
					t.Errorf("%+v", faults)
				}
				return
			}
			if len(faults) != 1 || faults[0].Line != tc.line || !strings.Contains(faults[0].Message, tc.fault) {
				t.Errorf("%+v, want %q in line %d", faults, tc.fault, tc.line)
			}
		})
	}
}

// An item of a list of one kind is of that kind if it does not say so.
func TestItemsOfOneKind(t *testing.T) {
	objects, faults := Parse("f", []byte("apiVersion: b/v1\nkind: AList\nitems:\n- metadata: {name: a}\n- apiVersion: c/v1\n  kind: C\n"))
	if len(faults) > 0 || len(objects) != 2 {
		t.Fatal(objects, faults)
	}
	for i, want := range []string{"b/v1, Kind=A", "c/v1, Kind=C"} {
		if got := objects[i].GroupVersionKind().String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Folders hold other files, too: they are passed over, but not what lacks a part of an object.
func TestFoldersHoldOtherFiles(t *testing.T) {
	for text, want := range map[string]int{
		"- op: replace\n  path: /a\n": 0, "replicas: 2\n": 0, "kind: a\nreplicas: 2\n": 0, "a: 1\na: 2\n": 0,
		"apiVersion: v1\nmetadata: {name: a}\n": 1, "kind: A\nspec: {}\n": 1,
	} {
		if objects, faults := Parse("f", []byte(text)); len(objects) > 0 || len(faults) != want {
			t.Errorf("%q: %d objects, %+v", text, len(objects), faults)
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

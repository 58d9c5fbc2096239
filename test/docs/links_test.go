package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const index = "docs/README.md"

// TestLinks: each link to a file or a heading of the repository leads to one.
func TestLinks(t *testing.T) {
	anchors := map[string]map[string]bool{}
	documents := Read(t)
	for _, d := range documents {
		anchors[d.Path] = d.Anchors
	}
	seen := 0
	for _, d := range documents {
		for _, l := range d.Links {
			seen++
			if _, err := os.Stat(filepath.Join(Root, l.Path)); err != nil {
				t.Errorf("%s:%d: %s does not exist", d.Path, l.Line, l.Path)
				continue
			}
			if known, isDocument := anchors[l.Path]; isDocument && l.Fragment != "" && !known[l.Fragment] {
				t.Errorf("%s:%d: %s has no heading for #%s", d.Path, l.Line, l.Path, l.Fragment)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d links were found", seen)
	}
}

// TestIndex: docs/README.md has a link to every document, and the README of the repository one to docs/README.md.
func TestIndex(t *testing.T) {
	linked := map[string]map[string]bool{}
	documents := Read(t)
	for _, d := range documents {
		linked[d.Path] = map[string]bool{}
		for _, l := range d.Links {
			linked[d.Path][l.Path] = true
		}
	}
	for _, d := range documents {
		if strings.HasPrefix(d.Path, "docs/") && d.Path != index && !linked[index][d.Path] {
			t.Errorf("%s has no link to %s", index, d.Path)
		}
	}
	if !linked["README.md"][index] {
		t.Errorf("README.md has no link to %s", index)
	}
}

func TestParse(t *testing.T) {
	d := Parse("docs/a/b.md", "# It's `a_b`: c-d\n[x](../c.md#e) and [y](#it) `[no](link)` [z](https://example.com)\n"+
		"<!-- not run: no cloud -->\n```sh\ntrue\n```\n1. x\n   ```console\n   $ ls\n     a\n   ```\n<!-- not run on this page: no server -->\n```\nz\n```\n")
	want := []Block{
		{Document: "docs/a/b.md", Line: 5, Language: "sh", Text: "true\n", NotRun: "no cloud"},
		{Document: "docs/a/b.md", Line: 9, Language: "console", Text: "$ ls\n  a\n"},
		{Document: "docs/a/b.md", Line: 14, Text: "z\n", NotRun: "no server"},
	}
	if len(d.Blocks) != len(want) {
		t.Fatalf("%d blocks, want %d: %+v", len(d.Blocks), len(want), d.Blocks)
	}
	for i := range want {
		if d.Blocks[i] != want[i] {
			t.Errorf("block %d is %+v, want %+v", i, d.Blocks[i], want[i])
		}
	}
	if !d.Anchors["its-a_b-c-d"] {
		t.Errorf("anchors are %v", d.Anchors)
	}
	if len(d.Links) != 2 || d.Links[0] != (Link{2, "docs/c.md", "e"}) || d.Links[1] != (Link{2, "docs/a/b.md", "it"}) {
		t.Errorf("links are %+v", d.Links)
	}
}

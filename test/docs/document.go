// Package docs reads the documentation: its links, its headings, and its fenced blocks. Only tests use it: the ones beside it, which
// need no cluster, and those of test/guides, which run the commands.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// Root is the root of the repository, seen from a package two folders below it.
const Root = "../.."

// Document is a Markdown file.
type Document struct {
	// Path from the root of the repository, such as docs/install.md.
	Path   string
	Blocks []Block
	Links  []Link
	// Anchors are the fragments that links can have: one for each heading.
	Anchors map[string]bool
	// Headings are the texts of the headings with their number signs.
	Headings []string
	// Code is what stands between backquotes in the text.
	Code []Code
}

// Code is a piece of code in the text. It may go on in the next line.
type Code struct {
	Line int
	Text string
}

// Block is a fenced block.
type Block struct {
	// Document is the path of its document, Line the number of its first line there.
	Document string
	Line     int
	// Language follows the opening fence; empty if there is none.
	Language string
	Text     string
	// NotRun is why the block cannot run on the dev cluster, from the comment before it or from that of its document; empty if it runs.
	NotRun string
}

// Link is a link to another file or heading. Links to other sites are none.
type Link struct {
	Line int
	// Path from the root of the repository, and Fragment without its number sign; either may be empty.
	Path, Fragment string
}

var (
	fence   = regexp.MustCompile("^( *)```([a-z]*)$")
	heading = regexp.MustCompile(`^#+ `)
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	notRun  = regexp.MustCompile(`^ *<!-- not run( on this page)?: (.+) -->$`)
	code    = regexp.MustCompile("`[^`]*`")
)

// Read returns the documents of the repository: those at its root, and those in docs.
func Read(t testing.TB) []Document {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(Root, "docs"), func(path string, _ os.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var documents []Document
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		path, err := filepath.Rel(Root, file)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, Parse(path, string(content)))
	}
	return documents
}

// Parse reads a document.
func Parse(path, text string) Document {
	d := Document{Path: path, Anchors: map[string]bool{}}
	var page, next string // why blocks of this page, or the next one, cannot run
	var open *Block
	indent := ""
	for i, line := range strings.Split(text, "\n") {
		mark := fence.FindStringSubmatch(line)
		switch {
		case open != nil && mark != nil && mark[2] == "":
			d.Blocks = append(d.Blocks, *open)
			open, next = nil, ""
		case open != nil:
			open.Text += strings.TrimPrefix(line, indent) + "\n"
		case mark != nil:
			indent = mark[1]
			open = &Block{Document: path, Line: i + 2, Language: mark[2], NotRun: next}
			if next == "" {
				open.NotRun = page
			}
		default:
			if reason := notRun.FindStringSubmatch(line); reason != nil && reason[1] != "" {
				page = reason[2]
			} else if reason != nil {
				next = reason[2]
			}
			d.addLine(i+1, line)
		}
	}
	d.addCode(text)
	return d
}

var inline = regexp.MustCompile("`([^`]+)`")

// addCode reads what stands between backquotes outside of all blocks.
func (d *Document) addCode(text string) {
	inside := false
	var prose []string
	for line := range strings.SplitSeq(text, "\n") {
		isFence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if isFence {
			inside = !inside
		}
		if inside || isFence {
			line = ""
		}
		prose = append(prose, line)
	}
	rest := strings.Join(prose, "\n")
	for _, m := range inline.FindAllStringSubmatchIndex(rest, -1) {
		code := rest[m[2]:m[3]]
		if strings.Contains(code, "\n\n") {
			continue
		}
		d.Code = append(d.Code, Code{Line: 1 + strings.Count(rest[:m[2]], "\n"), Text: strings.Join(strings.Fields(code), " ")})
	}
}

// addLine reads a line outside of all blocks.
func (d *Document) addLine(number int, line string) {
	if heading.MatchString(line) {
		d.Headings = append(d.Headings, line)
		d.Anchors[anchor(strings.TrimLeft(line, "# "))] = true
	}
	for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, "``"), -1) {
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		path, fragment, _ := strings.Cut(m[1], "#")
		if path != "" {
			path = filepath.Join(filepath.Dir(d.Path), path)
		} else {
			path = d.Path
		}
		d.Links = append(d.Links, Link{Line: number, Path: path, Fragment: fragment})
	}
}

// anchor returns the fragment of a heading, as GitHub makes it.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// Runs reports whether the runner of test/guides runs the block.
func (b Block) Runs() bool {
	return (b.Language == "sh" || b.Language == "console") && b.NotRun == "" && b.File() == ""
}

// Files are the names of files that YAML blocks of the document are: their first line is a comment with the name.
func (d Document) Files() []string {
	var names []string
	for _, b := range d.Blocks {
		if name := b.File(); name != "" {
			names = append(names, name)
		}
	}
	return names
}

var fileName = regexp.MustCompile(`^# ([\w./-]+\.(?:yaml|lua))\n`)

// File is the name of the file that a block is; empty if it is none.
func (b Block) File() string {
	if m := fileName.FindStringSubmatch(b.Text); m != nil {
		return m[1]
	}
	return ""
}

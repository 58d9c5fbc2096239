package docs

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// releases is where the files of releases are, of which docs/releasing.md has a list.
const releases = "https://github.com/lockstep-dns/lockstep/releases/download/"

// examples are files that stand for one of the reader's own.
var examples = []string{"-", "www.yaml"}

// containers are those of the pods that the documentation looks into.
var containers = []string{"named", "bindcar", "lockstep", "external-dns"}

// TestFiles: a file or folder that kubectl is given exists, or the page has said how it comes about: by a YAML block whose first line
// names it, or by a command that writes it.
func TestFiles(t *testing.T) {
	seen := 0
	released, err := os.ReadFile(filepath.Join(Root, "docs", "releasing.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range Read(t) {
		known := append(d.Files(), examples...)
		for _, c := range d.Commands() {
			known = append(known, c.written()...)
		}
		for _, file := range known {
			if dir := path.Dir(file); dir != "." {
				known = append(known, dir+"/")
			}
		}
		for _, c := range d.Commands() {
			if c.Program() != "kubectl" {
				continue
			}
			for _, flag := range []string{"-f", "-k", "--filename", "--kustomize"} {
				at := slices.Index(c.Words, flag)
				if at < 0 || at+1 == len(c.Words) || slices.Contains(c.Words, "logs") {
					continue
				}
				seen++
				file := c.Words[at+1]
				if name, ok := strings.CutPrefix(file, releases); ok && strings.Contains(string(released), "`"+path.Base(name)+"`") {
					continue
				}
				_, err := os.Stat(filepath.Join(Root, file))
				if err != nil && !slices.Contains(known, file) && !slices.Contains(known, path.Dir(file)+"/") {
					t.Errorf("%s:%d: %s: %s does not exist", c.Document, c.Line, c, file)
				}
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d files were found", seen)
	}
}

// written returns what a command writes: its output, and the folder of lockstep import.
func (c Command) written() []string {
	files := []string{c.Output}
	if at := slices.Index(c.Words, "--output"); at >= 0 && at+1 < len(c.Words) {
		files = append(files, c.Words[at+1])
	}
	return files
}

// TestContainers: the containers that kubectl is asked for are those that the pods have.
func TestContainers(t *testing.T) {
	for _, d := range Read(t) {
		for _, c := range d.Commands() {
			at := slices.Index(c.Words, "-c")
			if c.Program() == "kubectl" && at >= 0 && at+1 < len(c.Words) && !slices.Contains(containers, c.Words[at+1]) {
				t.Errorf("%s:%d: %s: there is no container %s", c.Document, c.Line, c, c.Words[at+1])
			}
		}
	}
}

// TestTools: dig has the options and rndc has the commands that the documentation uses, also where Lockstep sends them to named.
func TestTools(t *testing.T) {
	digHelp, rndcHelp := help(t, "dig", "-h"), help(t, "rndc", "-h")
	seen := 0
	for _, d := range Read(t) {
		for _, c := range d.Commands() {
			words := c.Words
			if at := slices.Index(words, "/lockstep"); at >= 0 {
				words = words[at+1:]
			}
			if len(words) < 2 {
				continue
			}
			switch path.Base(words[0]) {
			case "dig":
				for _, w := range words {
					name, isOption := strings.CutPrefix(w, "+")
					name, _, _ = strings.Cut(strings.TrimPrefix(name, "no"), "=")
					if isOption && !regexp.MustCompile(`\+(\[no\])?`+name+`\b`).MatchString(digHelp) {
						t.Errorf("%s:%d: %s: dig has no option %s", c.Document, c.Line, c, w)
					}
					seen++
				}
			case "rndc":
				if !regexp.MustCompile(`(?m)^\s+` + regexp.QuoteMeta(words[1]) + `\b`).MatchString(rndcHelp) {
					t.Errorf("%s:%d: %s: rndc has no command %s", c.Document, c.Line, c, words[1])
				}
				seen++
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d options and commands were found", seen)
	}
}

func help(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if len(out) == 0 {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return string(out)
}

func TestCommands(t *testing.T) {
	d := Parse("a.md", "`kubectl a\n--b` and no\n```sh\nkubectl apply -f x.yaml && lockstep diff \\\n  -o 'a b' >out   # why\nA=1 kubectl exec p -- /lockstep rndc \"$(kubectl get x | tail -1)\" | cat 2>/dev/null\n"+
		"kubectl apply -f - <<EOF\nkubectl no\nEOF\n```\n```console\n$ kubectl b\nkubectl no\n$ kubectl c |\n  dig\n```\n```\nkubectl d ──► no\n```\n")
	var got []string
	for _, c := range d.Commands() {
		got = append(got, c.String()+">"+c.Output)
	}
	want := []string{
		"kubectl apply -f x.yaml>", "lockstep diff -o a b>out", "kubectl exec p -- /lockstep rndc $(kubectl get x | tail -1)>", "cat>", "kubectl get x>", "tail -1>",
		"kubectl apply -f ->", "kubectl b>", "kubectl c>", "dig>", "kubectl a --b>",
	}
	if !slices.Equal(got, want) {
		t.Errorf("commands are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, b := range d.Blocks {
		for _, s := range b.Steps() {
			if strings.HasPrefix(s.Text, "kubectl b") && !slices.Equal(s.Output, []string{"kubectl no"}) {
				t.Errorf("the output of %q is %q", s.Text, s.Output)
			}
		}
	}
}

package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Command is one command of the documentation.
type Command struct {
	Document string
	Line     int
	// Words of the command without variables that are set before it, redirections and quotes. Substitutions are left as they are.
	Words []string
	// Output is the file that its output is redirected to; empty if there is none.
	Output string
}

// Steps returns what a reader types of a block, each with the output that the block shows for it.
func (b Block) Steps() []Step {
	var steps []Step
	open := false // the last step goes on
	for i, line := range strings.Split(strings.TrimSuffix(b.Text, "\n"), "\n") {
		text, typed := line, true
		if b.Language == "console" || b.Language == "" && strings.Contains("\n"+b.Text, "\n$ ") {
			text, typed = strings.CutPrefix(line, "$ ")
		}
		switch {
		case open:
			last := &steps[len(steps)-1]
			last.Text += "\n" + line
			open = goesOn(last.Text)
		case typed && strings.TrimSpace(text) != "" && !strings.HasPrefix(strings.TrimSpace(text), "#"):
			steps = append(steps, Step{Line: b.Line + i, Text: text})
			open = goesOn(text)
		case !typed && len(steps) > 0:
			last := &steps[len(steps)-1]
			last.Output = append(last.Output, line)
		}
	}
	return steps
}

// Step is what a reader types at once.
type Step struct {
	Line int
	Text string
	// Output is what the block shows after it.
	Output []string
}

var hereDocument = regexp.MustCompile(`<<-?'?([A-Z]+)'?`)

// goesOn reports whether the shell would wait for another line.
func goesOn(text string) bool {
	if m := hereDocument.FindStringSubmatch(text); m != nil {
		return !strings.HasSuffix(text, "\n"+m[1])
	}
	trimmed := strings.TrimRight(text, " ")
	for _, end := range []string{"\\", "|", "&&"} {
		if strings.HasSuffix(trimmed, end) {
			return true
		}
	}
	l := lexer{text: text}
	l.run()
	return l.unfinished
}

// Commands returns the commands of the blocks of a document, and of what it has between backquotes in its text.
func (d Document) Commands() []Command {
	var all []Command
	for _, b := range d.Blocks {
		if !slices.Contains([]string{"sh", "console", ""}, b.Language) {
			continue
		}
		for _, s := range b.Steps() {
			all = append(all, parse(d.Path, s.Line, s.Text)...)
		}
	}
	for _, c := range d.Code {
		all = append(all, parse(d.Path, c.Line, c.Text)...)
	}
	return all
}

// parse returns the commands of a shell's line that are complete: a text with an ellipsis is not, and a line of a picture is none.
func parse(document string, line int, text string) []Command {
	if strings.ContainsAny(text, "…─│▲▼") {
		return nil
	}
	text, _, _ = strings.Cut(text, "<<")
	l := lexer{text: strings.ReplaceAll(text, "\\\n", " ")}
	l.run()
	var all []Command
	for _, words := range l.commands {
		all = append(all, newCommand(document, line, words))
	}
	for _, inner := range l.substitutions {
		all = append(all, parse(document, line, inner)...)
	}
	return slices.DeleteFunc(all, func(c Command) bool { return len(c.Words) == 0 })
}

var assignment = regexp.MustCompile(`^[A-Za-z_]+=`)

func newCommand(document string, line int, words []string) Command {
	c := Command{Document: document, Line: line}
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case (w == ">" || w == ">>" || w == "<" || w == "2>") && i+1 < len(words):
			i++
			if w == ">" || w == ">>" {
				c.Output = words[i]
			}
		case len(c.Words) == 0 && (assignment.MatchString(w) || w == "sudo" || w == "export"):
		default:
			c.Words = append(c.Words, w)
		}
	}
	return c
}

// Program is the name of what runs, without its folder.
func (c Command) Program() string { return filepath.Base(c.Words[0]) }

func (c Command) String() string { return strings.Join(c.Words, " ") }

// lexer divides a line of a shell into simple commands.
type lexer struct {
	text          string
	commands      [][]string
	substitutions []string
	unfinished    bool

	words   []string
	word    strings.Builder
	started bool
}

func (l *lexer) endWord() {
	if l.started {
		l.words = append(l.words, l.word.String())
	}
	l.word.Reset()
	l.started = false
}

func (l *lexer) endCommand() {
	l.endWord()
	l.commands = append(l.commands, l.words)
	l.words = nil
}

func (l *lexer) add(text string) {
	l.started = true
	l.word.WriteString(text)
}

func (l *lexer) run() {
	for i := 0; i < len(l.text); {
		i += l.next(l.text[i:])
	}
	l.endCommand()
}

// next reads what a text begins with, and returns how much that is.
func (l *lexer) next(rest string) int {
	switch c := rest[0]; {
	case c == '\'' || c == '"':
		end := strings.IndexByte(rest[1:], c)
		if end < 0 {
			l.unfinished, end = true, len(rest)-1
		}
		inner := rest[1:min(len(rest), end+1)]
		if c == '"' {
			l.readSubstitutions(inner)
		}
		l.add(inner)
		return min(len(rest), end+2)
	case strings.HasPrefix(rest, "$("):
		end := closing(rest[1:])
		if end < 0 {
			l.unfinished = true
			return len(rest)
		}
		l.substitutions = append(l.substitutions, rest[2:end+1])
		l.add(rest[:end+2])
		return end + 2
	case c == '#' && !l.started:
		if end := strings.IndexByte(rest, '\n'); end >= 0 {
			return end
		}
		return len(rest)
	case c == ' ':
		l.endWord()
	case c == '>' || c == '<':
		if l.word.String() != "2" {
			l.endWord()
		}
		l.add(string(c))
		if strings.HasPrefix(rest, ">>") {
			l.add(">")
			l.endWord()
			return 2
		}
		if strings.HasPrefix(rest, ">&") {
			l.word.Reset()
			l.started = false
			return 3
		}
		l.endWord()
	case strings.ContainsRune("|;&()\n", rune(c)):
		l.endCommand()
	default:
		l.add(rest[:1])
	}
	return 1
}

func (l *lexer) readSubstitutions(text string) {
	for {
		_, after, found := strings.Cut(text, "$(")
		if !found {
			return
		}
		end := closing("(" + after)
		if end < 0 {
			return
		}
		l.substitutions = append(l.substitutions, after[:end-1])
		text = after[end-1:]
	}
}

// closing returns the position of the parenthesis that closes the one at the beginning; -1 if there is none.
func closing(text string) int {
	depth := 0
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

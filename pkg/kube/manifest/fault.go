package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fault is a place where a file is not YAML, or has something that is no object.
type Fault struct {
	File    string
	Line    int
	Message string
}

// problem is why a document is not applied as it is.
type problem struct {
	line    int // of the document
	message string
}

func (p *problem) Error() string { return p.message }

var (
	lineIn   = regexp.MustCompile(`line (\d+)`)
	anchorIn = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)
	// byParser are errors of which the YAML library gives the line before.
	byParser = regexp.MustCompile(`^did not find expected (node content|key|'-' indicator|',' or '[\]}]'|<)`)
)

// newFault says where the text of a document, which begins in a line of the file, is wrong, and how.
func newFault(file string, text []byte, line int, err error) Fault {
	message := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: ")
	at := func(offset int) int { return line + bytes.Count(text[:max(offset, 0)], []byte("\n")) }
	isKnown, template := errors.As(err, new(*problem)), bytes.Index(text, []byte("{{"))
	switch m := anchorIn.FindStringSubmatch(message); {
	case template >= 0:
		return Fault{file, at(template), "a template, such as Helm's: render it first (helm template), and check what comes out"}
	case bytes.HasPrefix(text, []byte("%")):
		return Fault{file, line, "kubectl reads no directives such as %YAML: remove the line"}
	case isKnown:
		var p *problem
		_ = errors.As(err, &p)
		return Fault{file, line + p.line - 1, p.message}
	case m != nil:
		line = at(bytes.Index(text, []byte("*"+m[1])))
	case !utf8.Valid(text):
		return Fault{file, at(firstInvalid(text)), "not UTF-8: save the file in UTF-8"}
	case strings.Contains(message, "control characters"):
		line = at(bytes.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }))
	}
	if m := lineIn.FindStringSubmatch(message); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			line += n - 1
			message = strings.TrimPrefix(strings.Replace(message, m[0]+": ", "", 1), "unmarshal errors:\n  ")
		}
		if byParser.MatchString(message) {
			line++
		}
	}
	return Fault{file, line, fmt.Sprintf("not YAML: %s", message)}
}

// firstInvalid is where the first byte is that is not UTF-8.
func firstInvalid(text []byte) (at int) {
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

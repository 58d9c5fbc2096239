package zoneimport

import (
	"bytes"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// lineReader gives a zone file to the parser byte by byte and knows in which line the entry began that was read last. The
// parser reads to the end of an entry and no further.
type lineReader struct {
	name string
	text []byte
	// next is the offset of the next byte, lineStart that of its line, which has the number line, from 1.
	next, lineStart, line int
	// begun is the line in which the entry being read began, 0 before it has; last is that of the one before.
	begun, last int
	// depth counts open parentheses, in which an entry goes on over lines.
	depth                    int
	quoted, comment, escaped bool
	// included is the name by which the parser knows the file, empty for the zone file itself.
	included string
	// closed is true when the parser is done with the file.
	closed bool
}

func newLineReader(name string, text []byte) *lineReader {
	return &lineReader{name: name, text: text, line: 1}
}

// place returns where the entry began that is being read or was read last.
func (r *lineReader) place() recordPlace {
	line := r.begun
	if line == 0 {
		line = max(r.last, 1)
	}
	return recordPlace{r.name, line}
}

// ReadByte implements io.ByteReader, which the parser prefers.
func (r *lineReader) ReadByte() (byte, error) {
	if r.next == len(r.text) {
		r.endEntry()
		return 0, io.EOF
	}
	c := r.text[r.next]
	r.next++
	if c == '"' && r.isInclude() {
		return ' ', nil // BIND takes names of files in quotes, the parser does not.
	}
	r.followByte(c)
	return c, nil
}

// isInclude reports whether the line is an $INCLUDE.
func (r *lineReader) isInclude() bool {
	const directive = "$INCLUDE"
	line := r.text[r.lineStart:]
	return len(line) > len(directive) && bytes.EqualFold(line[:len(directive)], []byte(directive)) && r.depth == 0 && !r.quoted
}

// followByte follows the syntax as far as it decides on where entries end (RFC 1035 section 5.1).
func (r *lineReader) followByte(c byte) {
	wasEscaped := r.escaped
	r.escaped = false
	switch {
	case c == '\n':
		r.line, r.lineStart = r.line+1, r.next
		r.comment = false
		if r.depth == 0 && !r.quoted {
			r.endEntry()
		}
		return
	case r.comment, c == ' ', c == '\t', c == '\r':
		return
	case wasEscaped:
	case c == '\\':
		r.escaped = true
	case c == '"':
		r.quoted = !r.quoted
	case r.quoted:
	case c == ';':
		r.comment = true
		return
	case c == '(':
		r.depth++
	case c == ')':
		r.depth = max(0, r.depth-1)
	}
	if r.begun == 0 {
		r.begun = r.line
	}
}

func (r *lineReader) endEntry() {
	if r.begun != 0 {
		r.last, r.begun = r.begun, 0
	}
}

// Read implements io.Reader; the parser does not use it.
func (r *lineReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c, err := r.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = c
	return 1, nil
}

// Stat implements fs.File; the parser does not ask.
func (r *lineReader) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }

// Close implements fs.File.
func (r *lineReader) Close() error {
	r.closed = true
	return nil
}

// openFiles are the zone file and the files that it is including, one inside the other.
type openFiles struct {
	stack []*lineReader
	// limit is how many bytes each may have.
	limit int64
}

func (f *openFiles) push(r *lineReader) { f.stack = append(f.stack, r) }

// recordPlace returns the place of the record that the parser has just given.
func (f *openFiles) recordPlace() recordPlace {
	for f.stack[len(f.stack)-1].closed {
		f.stack = f.stack[:len(f.stack)-1]
	}
	return f.stack[len(f.stack)-1].place()
}

// errorPlace returns the place of an error, whose text begins with the name of an included file.
func (f *openFiles) errorPlace(err error) recordPlace {
	for _, r := range slices.Backward(f.stack[1:]) {
		if strings.HasPrefix(err.Error(), r.included+": dns: ") {
			return r.place()
		}
	}
	return f.stack[0].place()
}

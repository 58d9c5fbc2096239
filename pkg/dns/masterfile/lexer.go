package masterfile

import (
	"errors"
	"fmt"
	"strings"
)

// word is a token of an entry: a plain word or a string in quotes.
type word struct {
	// text is as written, escapes included, without the quotes around it.
	text   string
	quoted bool
	// nested is true in parentheses.
	nested bool
	// joined is true if nothing is between the word before and this one.
	joined bool
}

// value is the text without the escapes of quotes in quotes. All other escapes stay: what they mean depends on the field.
func (w word) value() string {
	if !w.quoted || !strings.Contains(w.text, `\"`) {
		return w.text
	}
	var out strings.Builder
	for i := 0; i < len(w.text); i++ {
		if w.text[i] == '\\' {
			if i++; w.text[i] != '"' {
				out.WriteByte('\\')
			}
		}
		out.WriteByte(w.text[i])
	}
	return out.String()
}

// entry is a line of a master file, or several of them in parentheses (RFC 1035 section 5.1).
type entry struct {
	// line is that of the first word, from 1.
	line int
	// inherits is true if the line begins with a blank: the owner is the last one stated.
	inherits bool
	// words are valid until the next entry is read. A blank line has none.
	words []word
	// unended is true for the last line of a file if it has no line end.
	unended bool
}

// maxWords bounds the memory that an entry takes. No rdata of 65,535 bytes has as many words.
const maxWords = 1 << 18

// lexer cuts the text of a file into entries as BIND's lib/isc/lex.c does.
type lexer struct {
	text string
	// pos is the offset of the next byte, which is in the given line.
	pos, line int
	// middle is true if the text begins in the middle of a line, where a blank at the beginning says nothing.
	middle bool
	words  []word
}

func newLexer(text string) *lexer { return &lexer{text: text, line: 1} }

func (l *lexer) ended() bool { return l.pos == len(l.text) }

// next reads to the end of an entry.
func (l *lexer) next() (entry, error) {
	e := entry{line: l.line, inherits: !l.middle && !l.ended() && isBlank(l.text[l.pos])}
	l.middle = false
	depth, wordEnd := 0, -1
	words := l.words[:0]
	for !l.ended() {
		switch c := l.text[l.pos]; {
		case c == '\n' || c == '\r':
			l.skipLineEnd()
			if depth == 0 {
				l.words, e.words = words, words
				return e, nil
			}
		case isBlank(c):
			l.pos++
		case c == ';':
			l.skipComment()
		case c == '(':
			depth++
			l.pos++
		case c == ')':
			if depth--; depth < 0 {
				return e, errors.New(`a ")" closes no "("`)
			}
			l.pos++
		case len(words) == maxWords:
			return e, fmt.Errorf("the entry has more than %d words", maxWords)
		default:
			if len(words) == 0 {
				e.line = l.line
			}
			joined := l.pos == wordEnd
			w, err := l.word(c)
			if err != nil {
				return e, err
			}
			w.nested, w.joined, wordEnd = depth > 0, joined, l.pos
			words = append(words, w)
		}
	}
	if depth > 0 {
		return e, errors.New(`a "(" is not closed`)
	}
	e.unended, e.words, l.words = true, words, words
	return e, nil
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// skipLineEnd takes "\n", "\r\n" or a single "\r", which ends a line too.
func (l *lexer) skipLineEnd() {
	if l.text[l.pos] == '\r' {
		if l.pos++; l.ended() || l.text[l.pos] != '\n' {
			return
		}
	}
	l.pos++
	l.line++
}

func (l *lexer) skipComment() {
	if n := strings.IndexByte(l.text[l.pos:], '\n'); n >= 0 {
		l.pos += n
	} else {
		l.pos = len(l.text)
	}
}

func (l *lexer) word(first byte) (word, error) {
	switch first {
	case 0:
		return word{}, errors.New("there is a byte 0 outside of quotes: the file is not text, or not in ASCII or UTF-8")
	case '"':
		return l.quotedWord()
	}
	begin := l.pos
	for !l.ended() && !endsWord(l.text[l.pos]) {
		if l.text[l.pos] == '\\' && l.pos+1 < len(l.text) && l.text[l.pos+1] != '\n' && l.text[l.pos+1] != '\r' {
			l.pos++
		}
		l.pos++
	}
	return word{text: l.text[begin:l.pos]}, nil
}

func endsWord(c byte) bool {
	switch c {
	case ' ', '\t', '\n', '\r', '(', ')', '"', ';', 0:
		return true
	}
	return false
}

// quotedWord reads a string in quotes, which has a line end only after a backslash.
func (l *lexer) quotedWord() (word, error) {
	l.pos++
	for begin := l.pos; !l.ended(); l.pos++ {
		c := l.text[l.pos]
		if c == '"' {
			l.pos++
			return word{text: l.text[begin : l.pos-1], quoted: true}, nil
		}
		if c == '\n' {
			break
		}
		if c != '\\' {
			continue
		}
		if l.pos++; l.ended() {
			break
		}
		if l.text[l.pos] == '\n' {
			l.line++
		}
	}
	return word{}, errors.New("a quote is not closed before the end of its line")
}

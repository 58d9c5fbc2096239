// Package conffile reads the syntax of named.conf: statements, blocks, strings and comments. It knows nothing of what a statement
// means, and reads no file.
package conffile

import (
	"errors"
	"strings"
)

// Statement is one statement of named.conf, up to its semicolon.
type Statement struct {
	// Words are what stands outside of blocks, strings without their quotes: "listen-on", "port", "5353".
	Words []string
	// Block has the statements of all blocks in it.
	Block []Statement
}

// Is reports whether a statement begins with a keyword. Case does not matter.
func (s Statement) Is(keyword string) bool {
	return len(s.Words) > 0 && strings.EqualFold(s.Words[0], keyword)
}

// Word returns the word at a position, "" if there are fewer.
func (s Statement) Word(n int) string {
	if n >= len(s.Words) {
		return ""
	}
	return s.Words[n]
}

// maxDepth bounds how deep blocks may be nested.
const maxDepth = 32

var (
	errUnbalanced = errors.New("a brace or a semicolon is missing, or one is too many")
	errOpen       = errors.New("a string or a comment does not end")
)

// Parse returns the statements of a file.
func Parse(text string) ([]Statement, error) {
	p := parser{text: text}
	return p.readBlock(0)
}

type parser struct {
	text string
	at   int
}

// readBlock reads statements up to the end of the block, or of the file at depth 0.
func (p *parser) readBlock(depth int) (all []Statement, err error) {
	if depth > maxDepth {
		return nil, errUnbalanced
	}
	var current Statement
	empty := true
	for {
		word, isString, err := p.next()
		switch {
		case err != nil:
			return nil, err
		case isString:
			current.Words, empty = append(current.Words, word), false
		case word == "{":
			block, err := p.readBlock(depth + 1)
			if err != nil {
				return nil, err
			}
			current.Block, empty = append(current.Block, block...), false
		case word == ";":
			if !empty {
				all = append(all, current)
			}
			current, empty = Statement{}, true
		case word == "" && depth == 0 && empty, word == "}" && depth > 0 && empty:
			return all, nil
		case word == "" || word == "}":
			return nil, errUnbalanced
		default:
			current.Words, empty = append(current.Words, word), false
		}
	}
}

// next returns the next word, string, brace or semicolon; "" at the end of the file.
func (p *parser) next() (word string, isString bool, err error) {
	if err := p.skipBlanks(); err != nil || p.at == len(p.text) {
		return "", false, err
	}
	start := p.at
	switch p.text[p.at] {
	case '{', '}', ';':
		p.at++
		return p.text[start:p.at], false, nil
	case '"':
		word, err := p.readString()
		return word, true, err
	}
	for p.at < len(p.text) && !strings.ContainsRune(" \t\r\n{};\"#", rune(p.text[p.at])) && p.commentAt() == "" {
		p.at++
	}
	return p.text[start:p.at], false, nil
}

// commentAt returns the characters that open a comment at the present position, if one begins there.
func (p *parser) commentAt() string {
	for _, opening := range []string{"#", "//", "/*"} {
		if strings.HasPrefix(p.text[p.at:], opening) {
			return opening
		}
	}
	return ""
}

func (p *parser) skipBlanks() error {
	for p.at < len(p.text) {
		switch opening := p.commentAt(); {
		case opening == "/*":
			end := strings.Index(p.text[p.at+2:], "*/")
			if end < 0 {
				return errOpen
			}
			p.at += 2 + end + 2
		case opening != "":
			end := strings.IndexByte(p.text[p.at:], '\n')
			if end < 0 {
				end = len(p.text) - p.at
			}
			p.at += end
		case strings.ContainsRune(" \t\r\n", rune(p.text[p.at])):
			p.at++
		default:
			return nil
		}
	}
	return nil
}

// readString reads a string; a backslash takes the next character as it is.
func (p *parser) readString() (string, error) {
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return b.String(), nil
		case c == '\\' && p.at+1 < len(p.text):
			p.at++
			b.WriteByte(p.text[p.at])
		default:
			b.WriteByte(c)
		}
	}
	return "", errOpen
}

package render

import (
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SafeWriter writes to Out what SafeText makes of a text. What servers, sidecars and tenants say is in everything that is printed.
type SafeWriter struct {
	Out io.Writer
	// rest is the beginning of a character whose end comes with the next write.
	rest string
}

// Write implements io.Writer.
func (w *SafeWriter) Write(p []byte) (int, error) {
	text := w.rest + string(p)
	whole := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if !utf8.FullRuneInString(text[at:]) {
				whole = at
			}
			break
		}
	}
	w.rest = strings.Clone(text[whole:])
	if _, err := io.WriteString(w.Out, SafeText(text[:whole])); err != nil {
		return 0, err
	}
	return len(p), nil
}

// SafeText escapes what a terminal would obey: control characters but line feeds and tabs, and those that change the direction of text. What
// can stand in a string of JSON is escaped as JSON has it. The colors of a Palette stay.
func SafeText(text string) string {
	if strings.IndexFunc(text, isCommand) < 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		if n := lengthOfColor(text); n > 0 {
			b.WriteString(text[:n])
			text = text[n:]
			continue
		}
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(text[0]), 16))
		case r == 0x7f:
			b.WriteString(`\u007f`)
		case r != utf8.RuneError && isCommand(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
		text = text[n:]
	}
	return b.String()
}

// isCommand is true for characters that a terminal obeys. Bytes that are no UTF-8 may be commands in another encoding.
func isCommand(r rune) bool {
	return r == utf8.RuneError || unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// lengthOfColor measures the sequence of a Palette that a text begins with, in bytes; 0 if there is none.
func lengthOfColor(text string) int {
	for _, c := range []textColor{"0", bold, faint, red, green, yellow, cyan} {
		if sequence := "\x1b[" + string(c) + "m"; strings.HasPrefix(text, sequence) {
			return len(sequence)
		}
	}
	return 0
}

package render

import (
	"strings"
	"testing"
)

func TestSafeWriter(t *testing.T) {
	painted := Palette{On: true}.paint(red, "wrong") + Palette{On: true}.paint(bold, "ü\t1") + "\n"
	for text, want := range map[string]string{
		"plain\ttext\n":         "plain\ttext\n",
		painted:                 painted,
		"\x1b[2J\x1b]0;title\a": `\x1b[2J\x1b]0;title\a`,
		"\x1b[31;8mhidden":      `\x1b[31;8mhidden`,
		"a\rb\bc\u009b2Jd":      `a\rb\bc\u009b2Jd`,
		"a\u202eb":              `a\u202eb`,
		"a\x7fb":                `a\u007fb`,
		"\x9b2J":                `\x9b2J`,
		"日本 \ufffd":             "日本 \ufffd",
	} {
		var whole, pieces strings.Builder
		for _, w := range []struct {
			out  *strings.Builder
			size int
		}{{&whole, len(text)}, {&pieces, 1}} {
			safe := &SafeWriter{Out: w.out}
			for rest := []byte(text); len(rest) > 0; rest = rest[w.size:] {
				if _, err := safe.Write(rest[:w.size]); err != nil {
					t.Fatal(err)
				}
			}
		}
		if whole.String() != want {
			t.Errorf("%q is written as %q, want %q", text, whole.String(), want)
		}
		if !strings.Contains(text, "\x1b[") && pieces.String() != want {
			t.Errorf("%q byte by byte is written as %q, want %q", text, pieces.String(), want)
		}
	}
}

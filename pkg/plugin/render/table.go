package render

import (
	"strings"
	"unicode/utf8"
)

// cell is text in one color.
type cell struct {
	text string
	in   textColor
}

// gap is between two columns.
const gap = "   "

// formatTable lines up the columns of rows. A column that is empty but for its header, which is the first row's, is left out; the
// last column that is left is not padded.
func (p Palette) formatTable(rows [][]cell) string {
	if len(rows) == 0 {
		return ""
	}
	widths := make([]int, len(rows[0]))
	for _, r := range rows[1:] {
		for i, c := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	for i, c := range rows[0] {
		if widths[i] > 0 {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	var b strings.Builder
	for _, r := range rows {
		p.writeRow(&b, r, widths)
	}
	return b.String()
}

// writeRow ends with its last text: nothing but a line feed comes after that.
func (p Palette) writeRow(b *strings.Builder, row []cell, widths []int) {
	for len(row) > 0 && row[len(row)-1].text == "" {
		row = row[:len(row)-1]
	}
	spaces := ""
	for i, c := range row {
		if widths[i] == 0 {
			continue
		}
		b.WriteString(spaces)
		b.WriteString(p.paint(c.in, oneLine(c.text)))
		spaces = strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)) + gap
	}
	b.WriteByte('\n')
}

// oneLine keeps what servers and objects say from breaking lines, and from reaching a terminal as control sequences. The
// text stays as wide as it is.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}

package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// The columns of a document's table: name | what is measured | reference | ours | reference's | ratio | goal.
const (
	nameColumn      = 1
	oursColumn      = 4
	referenceColumn = 5
	ratioColumn     = 6
	goalColumn      = 7
	columns         = 9 // with what is before the first bar and after the last
)

// originMark begins the line under the table that says where its newest figures come from.
const originMark = "<!-- newest figures --> "

var (
	goal   = regexp.MustCompile(`ratio ([0-9.]+)`)
	missed = " (missed)"
)

// updateDocument puts the figures of a report into the table of a document, and keeps everything else. A benchmark without a row gets one at the
// end; what it measures is then for somebody to write.
func updateDocument(document string, r *Report) string {
	var out []string
	var names []string
	done := map[string]bool{}
	inTable := false
	for line := range strings.SplitSeq(document, "\n") {
		cells := strings.Split(line, "|")
		switch isRow := len(cells) == columns; {
		case strings.HasPrefix(line, originMark):
			out = out[:len(out)-1] // with the empty line before it
			continue
		case isRow:
			inTable = true
			if result := r.find(strings.TrimSpace(cells[nameColumn])); result != nil {
				line = result.row(cells)
				names = append(names, result.Name)
				done[result.Name] = true
			}
		case inTable:
			inTable = false
			for i := range r.Results {
				if result := &r.Results[i]; !done[result.Name] {
					out = append(out, result.row(strings.Split("| "+result.Name+" | | "+result.Reference+" | | | | |", "|")))
					names = append(names, result.Name)
					done[result.Name] = true
				}
			}
			out = append(out, "", originMark+r.origin(names))
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// row returns a row of the table with the figures of a result.
func (s *Result) row(cells []string) string {
	m := s.median()
	ratio := fmt.Sprintf("%.2f", m.Ratio)
	if least, greatest := s.spread(); len(s.Runs) > 1 {
		ratio += fmt.Sprintf(" (%.2f–%.2f)", least, greatest)
	}
	cells[oursColumn], cells[referenceColumn], cells[ratioColumn] = " "+m.Ours+" ", " "+m.Reference+" ", " "+ratio+" "
	cells[goalColumn] = strings.Replace(cells[goalColumn], missed, "", 1)
	if match := goal.FindStringSubmatch(cells[goalColumn]); match != nil {
		if most, err := strconv.ParseFloat(match[1], 64); err == nil && m.Ratio > most {
			cells[goalColumn] = strings.Replace(cells[goalColumn], match[0], match[0]+missed, 1)
		}
	}
	return strings.Join(cells, "|")
}

// origin says where figures come from.
func (r *Report) origin(names []string) string {
	load := 0.
	for i := range r.Results {
		load = max(load, r.Results[i].load())
	}
	return fmt.Sprintf("The figures of %s are of %s. Each is that of the run with the median ratio; the load before the busiest run was %.1f.",
		strings.Join(names, ", "), r.Machine, load)
}

func updateFile(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("update needs a file of results and a document")
	}
	report, err := readReport(args[0])
	if err != nil {
		return err
	}
	document, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], []byte(updateDocument(string(document), report)), 0o644)
}

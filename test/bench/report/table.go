package main

import (
	"fmt"
	"strings"
)

// markdown returns the results as a table, and below it where they come from.
func (r *Report) markdown() string {
	var b strings.Builder
	b.WriteString("| name | reference | ours | reference's | ratio | spread | load |\n|---|---|--:|--:|--:|--:|--:|\n")
	for i := range r.Results {
		s := &r.Results[i]
		m := s.median()
		least, greatest := s.spread()
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %.2f | %.2f–%.2f | %.1f |\n", s.Name, s.Reference, m.Ours, m.Reference, m.Ratio, least, greatest, s.load())
	}
	fmt.Fprintf(&b, "\n%s. Figures are those of the run with the median ratio; the load is that before the busiest run.\n", r.Machine)
	return b.String()
}

// compareReports returns a table of both, and the names of what is slower: every run of it was slower than every run before.
func compareReports(before, after *Report) (text string, slower []string) {
	var b strings.Builder
	b.WriteString("| name | before | after | |\n|---|--:|--:|---|\n")
	for i := range after.Results {
		now := &after.Results[i]
		was := before.find(now.Name)
		if was == nil {
			fmt.Fprintf(&b, "| %s | | %.2f | new |\n", now.Name, now.median().Ratio)
			continue
		}
		verdict := "within the spread"
		wasLeast, wasGreatest := was.spread()
		switch least, greatest := now.spread(); {
		case least > wasGreatest:
			verdict = "slower"
			slower = append(slower, now.Name)
		case greatest < wasLeast:
			verdict = "faster"
		}
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %s |\n", now.Name, was.median().Ratio, now.median().Ratio, verdict)
	}
	for i := range before.Results {
		if was := &before.Results[i]; after.find(was.Name) == nil {
			fmt.Fprintf(&b, "| %s | %.2f | | not run |\n", was.Name, was.median().Ratio)
		}
	}
	return b.String(), slower
}

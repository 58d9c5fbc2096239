package render

import (
	"fmt"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/doctor"
)

// Findings prints a line for each finding, below a heading for its group, and the remedy below each that is bad.
func Findings(report doctor.Report, p Palette) string {
	var b strings.Builder
	results, names := 0, 0
	for _, f := range report {
		results, names = max(results, len(f.Level)), max(names, len(f.Check))
	}
	group := ""
	for _, f := range report {
		if f.Group != group {
			group = f.Group
			b.WriteString(p.paint(bold, group) + "\n")
		}
		level := p.paint(levelColor(f.Level), string(f.Level)) + strings.Repeat(" ", results-len(f.Level))
		b.WriteString(strings.TrimRight(fmt.Sprintf("  %s%s%-*s%s%s", level, gap, names, f.Check, gap, oneLine(f.Found)), " ") + "\n")
		if f.Remedy != "" {
			b.WriteString(strings.Repeat(" ", 2+results+names+2*len(gap)) + "→ " + oneLine(f.Remedy) + "\n")
		}
	}
	return b.String()
}

// FindingCounts counts, for the end of a report.
func FindingCounts(report doctor.Report, p Palette) string {
	text := fmt.Sprintf("%d checks: %d ok", len(report), report.Count(doctor.OK))
	for _, level := range []doctor.Level{doctor.Warning, doctor.Failure, doctor.Skipped} {
		if n := report.Count(level); n > 0 {
			text += fmt.Sprintf(", %d %s", n, level)
		}
	}
	if report.Healthy() {
		return p.paint(green, text)
	}
	return p.paint(red, text)
}

func levelColor(l doctor.Level) textColor {
	switch l {
	case doctor.OK:
		return green
	case doctor.Warning:
		return yellow
	case doctor.Failure:
		return red
	default:
		return faint
	}
}

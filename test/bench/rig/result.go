package rig

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// AddResult notes what [Main] prints last: a line that begins with RESULT. Ours and reference are in the given unit; what
// says what the reference is.
func (r *Rig) AddResult(name string, ours, reference float64, unit, what string) {
	r.results = append(r.results, fmt.Sprintf("RESULT %s ratio=%s ours=%s %s reference=%s %s (%s)",
		name, formatNumber(ours/reference), formatNumber(ours), unit, formatNumber(reference), unit, what))
}

// formatNumber shows three digits or all before the point.
func formatNumber(v float64) string {
	if v >= 100 || v == 0 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.*f", 2-int(math.Floor(math.Log10(v))), v)
}

func (r *Rig) printResults() {
	for _, line := range r.results {
		fmt.Println(line)
	}
}

// Times are durations of one thing, measured again and again.
type Times []time.Duration

// Quantile returns the value that the fraction q of all does not exceed (nearest rank).
func (t Times) Quantile(q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(t))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// String returns the quantiles that the goals are about.
func (t Times) String() string {
	return fmt.Sprintf("p50 %.1f ms, p95 %.1f ms, p99 %.1f ms, worst %.1f ms of %d",
		Milliseconds(t.Quantile(.5)), Milliseconds(t.Quantile(.95)), Milliseconds(t.Quantile(.99)), Milliseconds(t.Quantile(1)), len(t))
}

// Milliseconds returns a duration in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

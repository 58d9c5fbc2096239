// Package usage prints what a part of a benchmark costs for each object: CPU by program, and requests to kube-apiserver.
package usage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// Usage is what had been used at a moment.
type Usage struct {
	rig      *rig.Rig
	cpu      rig.CPUTimes
	requests map[string]float64
}

// Start returns what has been used so far.
func Start(ctx context.Context, r *rig.Rig) (*Usage, error) {
	cpu, err := rig.ReadCPUTimes()
	if err != nil {
		return nil, err
	}
	requests, err := r.CountRequests(ctx)
	return &Usage{r, cpu, requests}, err
}

// Report prints what was used since then for each of so many objects.
func (u *Usage) Report(ctx context.Context, count int, objects string) error {
	now, err := Start(ctx, u.rig)
	if err != nil {
		return err
	}
	var parts []string
	all, used := 0.0, now.cpu.Since(u.cpu)
	byCPU := func(a, b string) int { return cmp.Compare(used[b], used[a]) }
	for _, program := range slices.SortedFunc(maps.Keys(used), byCPU) {
		each := 1000 * used[program] / float64(count)
		all += each
		if each >= .01 {
			parts = append(parts, fmt.Sprintf("%s %.2f", program, each))
		}
	}
	fmt.Printf("CPU for each of %d %s, in ms: %.2f (%s)\n", count, objects, all, strings.Join(parts, ", "))
	parts = nil
	for _, what := range slices.Sorted(maps.Keys(now.requests)) {
		if n := (now.requests[what] - u.requests[what]) / float64(count); n >= .001 {
			parts = append(parts, fmt.Sprintf("%s %.3f", what, n))
		}
	}
	fmt.Printf("requests for each: %s\n", strings.Join(parts, ", "))
	return nil
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

const soakFolder = "_output/soak"

// soak runs the test stages of the gate so many times, whatever fails, and prints a table of what failed and what took longest. A stage
// that has a result is not run again, so that a soak goes on where it was stopped.
func soak(ctx context.Context, passes int) error {
	for pass := 1; pass <= passes; pass++ {
		folder := filepath.Join(soakFolder, fmt.Sprintf("pass-%02d", pass))
		for i := range stages {
			s := &stages[i]
			if s.lane == laneAll {
				continue
			}
			if _, err := os.Stat(filepath.Join(folder, s.name+".json")); err == nil {
				continue
			}
			fmt.Printf("== pass %d of %d: %s\n", pass, passes, s.name)
			if err := s.runTests(ctx, "", folder); err != nil && !errors.Is(err, errTestsFailed) {
				return err
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return printSoak(passes)
}

// endurance is what a soak saw of a test.
type endurance struct {
	name                  string
	passes, failures, red int
	longest               float64
}

func printSoak(passes int) error {
	seen := map[string]*endurance{}
	var all []*endurance
	for pass := 1; pass <= passes; pass++ {
		results, err := loadResults(filepath.Join(soakFolder, fmt.Sprintf("pass-%02d", pass)))
		if err != nil {
			return err
		}
		for _, r := range results {
			for i := range r.Tests {
				t := &r.Tests[i]
				key := r.Stage + " " + t.Package + " " + t.Name
				if seen[key] == nil {
					seen[key] = &endurance{name: t.Name}
					all = append(all, seen[key])
				}
				seen[key].add(t)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *endurance) int {
		return cmp.Or(-cmp.Compare(a.failures, b.failures), -cmp.Compare(a.longest, b.longest))
	})
	fmt.Println("| test | passes | failures | red | longest |\n|---|---|---|---|---|")
	const shown = 25
	var failed error
	for i, e := range all {
		if i < shown || e.failures > 0 {
			fmt.Printf("| %s | %d | %d | %d | %.0f s |\n", e.name, e.passes, e.failures, e.red, e.longest)
		}
		if e.red > 0 {
			failed = errTestsFailed
		}
	}
	if len(all) > shown {
		fmt.Printf("The other %d tests failed in no pass and took no longer.\n", len(all)-shown)
	}
	return failed
}

func (e *endurance) add(t *test) {
	for i := range t.Runs {
		e.longest = max(e.longest, t.Runs[i].Seconds)
		if action := t.Runs[i].Action; action != "pass" && action != "skip" {
			e.failures++
		}
	}
	if t.red() {
		e.red++
	} else {
		e.passes++
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// cpuTable is what programs on this machine have used in parts of the rounds.
type cpuTable struct {
	columns []string
	// objects is how many objects each column is about, used its CPU by program.
	objects map[string]int
	used    map[string]rig.CPUTimes
}

// measurePart does a part of a round, adds the CPU that is used meanwhile to a column, and takes profiles of its first seconds.
func (b *bulkBench) measurePart(ctx context.Context, column string, objects int, do func() error) error {
	var profiling errgroup.Group
	if *profiles != "" {
		profiling.Go(func() error {
			return b.SaveProfiles(ctx, filepath.Join(*profiles, strings.ReplaceAll(column, ": ", "-")+"-"))
		})
	}
	return errors.Join(b.cpu.measure(column, objects, do), profiling.Wait())
}

// measure adds the CPU that is used while something is done to a column.
func (t *cpuTable) measure(column string, objects int, do func() error) error {
	before, err := rig.ReadCPUTimes()
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	after, err := rig.ReadCPUTimes()
	if err != nil {
		return err
	}
	if !slices.Contains(t.columns, column) {
		t.columns = append(t.columns, column)
	}
	if t.used == nil {
		t.used, t.objects = map[string]rig.CPUTimes{}, map[string]int{}
	}
	if t.used[column] == nil {
		t.used[column] = rig.CPUTimes{}
	}
	t.objects[column] += objects
	for program, seconds := range after.Since(before) {
		t.used[column][program] += seconds
	}
	return nil
}

// leastShown is what a program must have used for an object, in milliseconds, to have a line of its own.
const leastShown = 0.05

// print shows a Markdown table, in milliseconds for each object.
func (t *cpuTable) print() {
	programs := map[string]struct{}{}
	const sum, rest = "all", "others"
	perObject := map[string]rig.CPUTimes{}
	for _, column := range t.columns {
		perObject[column] = rig.CPUTimes{}
		for program, seconds := range t.used[column] {
			perObject[column][program] = 1000 * seconds / float64(t.objects[column])
			if perObject[column][program] >= leastShown {
				programs[program] = struct{}{}
			}
		}
	}
	for _, column := range t.columns {
		for program, spent := range maps.Clone(perObject[column]) {
			perObject[column][sum] += spent
			if _, shown := programs[program]; !shown {
				perObject[column][rest] += spent
			}
		}
	}
	fmt.Printf("\nCPU in ms for each object:\n\n| program | %s |\n|---%s|\n", strings.Join(t.columns, " | "), strings.Repeat("|---", len(t.columns)))
	for _, program := range append(slices.Sorted(maps.Keys(programs)), rest, sum) {
		fmt.Printf("| %s |", program)
		for _, column := range t.columns {
			fmt.Printf(" %.2f |", perObject[column][program])
		}
		fmt.Println()
	}
	fmt.Println()
}

// measureRound does what users do with many objects: they create them, wait until all have their statuses, and delete them.
func (b *bulkBench) measureRound(ctx context.Context, who string, r round) (p phaseTimes, err error) {
	if err := b.WaitQuiet(ctx, 2*time.Second); err != nil {
		return p, err
	}
	var creation rig.Creation
	err = b.measurePart(ctx, who+": created", len(r.objects), func() (err error) {
		creation, err = b.createAll(ctx, r.path(""), r.objects)
		return err
	})
	if err != nil {
		return p, err
	}
	err = b.measurePart(ctx, who+": statuses", len(r.objects), func() error {
		ready, err := r.awaitStatuses(ctx)
		p.create, p.ready = creation.Duration(), ready.Sub(creation.Began)
		return err
	})
	if err != nil {
		return p, err
	}
	fmt.Printf("%s: %s; statuses %.1f s after the last\n", who, creation, (p.ready - p.create).Seconds())
	if r.between != nil {
		if err := r.between(ctx); err != nil {
			return p, err
		}
	}
	if err := b.WaitQuiet(ctx, 2*time.Second); err != nil {
		return p, err
	}
	err = b.measurePart(ctx, who+": deleted", len(r.objects), func() (err error) {
		p.remove, err = b.deleteAll(ctx, r.path, r.objects, r.release)
		return err
	})
	fmt.Printf("%s: deleted in %.1f s, %.0f/s\n", who, p.remove.Seconds(), float64(len(r.objects))/p.remove.Seconds())
	return p, err
}

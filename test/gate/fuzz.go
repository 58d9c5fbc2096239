package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	fuzzFolder = "_output/fuzz"
	// fuzzMemory bounds what a process that fuzzes may allocate, in bytes: what an outsider sends must not cost more.
	fuzzMemory = 2 << 30
)

// fuzz runs each fuzz test whose name matches for so long, one after the other. Inputs that fail are kept in the testdata of their
// package, where the unit tests find them.
func fuzz(ctx context.Context, selected string, long time.Duration) error {
	functions, err := fuzzFunctions(".", selected)
	if err != nil {
		return err
	}
	var failed []string
	for _, f := range functions {
		began := time.Now()
		progress, err := f.fuzz(ctx, long)
		if err != nil {
			failed = append(failed, f.folder+"."+f.name)
			fmt.Fprintf(output, "FAIL %s.%s: %v\n", f.folder, f.name, err)
			continue
		}
		fmt.Fprintf(output, "PASS %s.%s (%s; %s)\n", f.folder, f.name, time.Since(began).Round(time.Second), progress)
	}
	if len(failed) > 0 {
		fmt.Fprintf(output, "%d of %d fuzz tests failed: %s\n", len(failed), len(functions), strings.Join(failed, ", "))
		return errTestsFailed
	}
	return ctx.Err()
}

// fuzz builds the test with the instructions that guide its inputs, and runs it with bounded memory. It returns the last that Go says
// of its progress: how many inputs were tried.
func (f *function) fuzz(ctx context.Context, long time.Duration) (progress string, err error) {
	binary, cache := absolute(filepath.Join(fuzzFolder, f.name+".test")), absolute(filepath.Join(fuzzFolder, "inputs"))
	if err := os.MkdirAll(cache, 0o750); err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(binary) }()
	build := exec.CommandContext(ctx, "go", "test", "-c", "-fuzz=^"+f.name+"$", "-o", binary, "./"+f.folder)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("it does not build: %w\n%s", err, out)
	}
	run := exec.CommandContext(ctx, "prlimit", fmt.Sprintf("--data=%d", fuzzMemory), binary, "-test.run=^$", "-test.fuzz=^"+f.name+"$",
		"-test.fuzztime="+long.String(), "-test.fuzzcachedir="+cache)
	run.Dir = f.folder
	out, err := run.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if of, found := strings.CutPrefix(line, "fuzz: elapsed: "); found {
			progress = strings.TrimSpace(of)
		}
	}
	return progress, ctx.Err()
}

// fuzzFunctions returns the fuzz tests below a folder whose names match a selection. It is an error if there is none.
func fuzzFunctions(root, selected string) ([]function, error) {
	all, err := functionsOf(root, "Fuzz")
	if err != nil {
		return nil, err
	}
	found, err := matchingFunctions(all, selected)
	if err == nil && len(found) == 0 {
		err = errors.New("no fuzz test matches " + selected)
	}
	return found, err
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// verdict is what _output/gate.json says of the gate.
type verdict struct {
	Commit string `json:"commit"`
	// Dirty is true if the work tree differed from the commit.
	Dirty  bool               `json:"dirty,omitempty"`
	Result string             `json:"result"` // passed or failed
	Stages map[string]float64 `json:"secondsByStage"`
	Red    []string           `json:"red"`
	Flaky  []string           `json:"flaky"`
}

// report writes what the stages found into _output/gate.json, keeps the output of what failed once in _output/flaky, and prints what a
// reader has to know. It is an error if a stage that has to be there failed or left no result.
func report(ctx context.Context, folder string, required []string) error {
	results, err := loadResults(folder)
	if err != nil {
		return err
	}
	v := &verdict{Result: "passed", Stages: map[string]float64{}, Red: []string{}, Flaky: []string{}}
	if v.Commit, v.Dirty, err = head(ctx); err != nil {
		return err
	}
	var passed, failed int
	for _, r := range results {
		p, f, _ := r.count()
		passed, failed = passed+p, failed+f
		v.add(r)
		if err := keepFlaky(r); err != nil {
			return err
		}
	}
	for _, name := range required {
		if _, ok := v.Stages[name]; !ok {
			v.Red = append(v.Red, name+": did not run")
		}
	}
	if len(v.Red) > 0 {
		v.Result = "failed"
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join("_output", "gate.json"), append(data, '\n'), 0o600); err != nil {
		return err
	}
	for _, line := range v.Red {
		fmt.Println("RED", line)
	}
	for _, line := range v.Flaky {
		fmt.Println("FLAKY", line)
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if v.Result != "passed" {
		return errTestsFailed
	}
	return nil
}

func (v *verdict) add(r *result) {
	v.Stages[r.Stage] = float64(int(r.Seconds*10)) / 10
	before := len(v.Red)
	for i := range r.Tests {
		t := &r.Tests[i]
		line := t.Name + ": " + t.message()
		if t.red() {
			v.Red = append(v.Red, line)
		} else if t.flaky() {
			v.Flaky = append(v.Flaky, line)
		}
	}
	if !r.Passed && len(v.Red) == before {
		v.Red = append(v.Red, r.Stage+": the stage failed outside of a test")
	}
}

// keepFlaky writes the whole output of each first failure of a test that passed later.
func keepFlaky(r *result) error {
	for i := range r.Tests {
		t := &r.Tests[i]
		if !t.flaky() {
			continue
		}
		folder := filepath.Join("_output", "flaky")
		if err := os.MkdirAll(folder, 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, t.Name+".txt"), []byte(t.Runs[0].Output), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// head returns the commit that is checked out, and whether files differ from it.
func head(ctx context.Context) (commit string, dirty bool, err error) {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "", false, errors.Join(errors.New("git rev-parse HEAD"), err)
	}
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain").Output()
	return strings.TrimSpace(string(out)), len(changes) > 0, err
}

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// result is what a stage found.
type result struct {
	Stage   string  `json:"stage"`
	Passed  bool    `json:"passed"`
	Seconds float64 `json:"seconds"`
	Tests   []test  `json:"tests,omitempty"`
}

// test is a test function of a package, and each time that it ran.
type test struct {
	Package string `json:"package"`
	Name    string `json:"name"`
	Runs    []run  `json:"runs"`
}

// run is one time that a test ran.
type run struct {
	Action  string  `json:"action"` // pass, fail or skip; empty if the process ended before the test
	Seconds float64 `json:"seconds"`
	// Output is what the test and its subtests printed, if it did not pass.
	Output string `json:"output,omitempty"`
}

func (t *test) last() *run { return &t.Runs[len(t.Runs)-1] }

// red reports whether the test failed each time, or once did not end: then its process ended, and other tests have not run.
func (t *test) red() bool {
	return t.last().Action == "fail" || slices.ContainsFunc(t.Runs, func(r run) bool { return r.Action == "" })
}

// flaky reports whether the test failed and then passed.
func (t *test) flaky() bool {
	return !t.red() && slices.ContainsFunc(t.Runs, func(r run) bool { return r.Action == "fail" })
}

// testLine is a line that a test logged, without its indentation and place.
var testLine = regexp.MustCompile(`^\s+\w+_test\.go:\d+: (.*)$`)

// message returns the first line that a test said when it failed first.
func (t *test) message() string {
	i := slices.IndexFunc(t.Runs, func(r run) bool { return r.Action != "pass" && r.Action != "skip" })
	if i < 0 {
		return ""
	}
	said := ""
	for line := range strings.Lines(t.Runs[i].Output) {
		line = strings.TrimRight(line, "\n")
		if match := testLine.FindStringSubmatch(line); match != nil {
			said = match[1]
		} else if strings.Contains(line, "--- FAIL") && said != "" {
			break // What a test logs last before it fails is why.
		}
	}
	return said
}

// event is a line of test2json, as `go doc test2json` describes it.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// readResult reads the events of a stage.
func readResult(stage, file string) (*result, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &result{Stage: stage}
	index := map[string]int{}
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil && e.Test != "" {
			r.add(index, &e)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	for i := range r.Tests {
		for j := range r.Tests[i].Runs {
			if one := &r.Tests[i].Runs[j]; one.Action == "pass" || one.Action == "skip" {
				one.Output = ""
			}
		}
	}
	return r, nil
}

// add adds an event of a test or a subtest.
func (r *result) add(index map[string]int, e *event) {
	name, _, isSubtest := strings.Cut(e.Test, "/")
	key := e.Package + " " + name
	i, known := index[key]
	if !known {
		i = len(r.Tests)
		index[key] = i
		r.Tests = append(r.Tests, test{Package: e.Package, Name: name})
	}
	t := &r.Tests[i]
	switch {
	case e.Action == "run" && !isSubtest:
		t.Runs = append(t.Runs, run{})
	case len(t.Runs) == 0: // Without its beginning nothing is known of it.
	case e.Action == "output":
		t.last().Output += e.Output
	case !isSubtest && slices.Contains([]string{"pass", "fail", "skip"}, e.Action):
		t.last().Action, t.last().Seconds = e.Action, e.Elapsed
	}
}

// count returns how many tests passed, failed and were skipped.
func (r *result) count() (passed, failed, skipped int) {
	for i := range r.Tests {
		switch t := &r.Tests[i]; {
		case t.red():
			failed++
		case t.last().Action == "skip":
			skipped++
		default:
			passed++
		}
	}
	return passed, failed, skipped
}

func (r *result) save(folder string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, r.Stage+".json"), data, 0o600)
}

// loadResults reads what is in a folder, in the order of the stages' ends.
func loadResults(folder string) ([]*result, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var results []*result
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		r := &result{}
		if err := json.Unmarshal(data, r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		results = append(results, r)
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("no stage has left a result in %s: %w", folder, fs.ErrNotExist)
	}
	return results, nil
}

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Every test of the repository belongs to one stage, so that none is forgotten, and none runs twice.
func TestEveryTestHasAStage(t *testing.T) {
	functions, err := testFunctions("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(functions) < 500 {
		t.Fatalf("only %d tests were found", len(functions))
	}
	for _, f := range functions {
		var found []string
		for i := range stages {
			if !stages[i].again && stages[i].has(&f) {
				found = append(found, stages[i].name)
			}
		}
		if len(found) != 1 {
			t.Errorf("%s of %s is in the stages %q; it belongs to one, by a line of test/gate/stages.go", f.name, f.folder, found)
		}
	}
}

// Each stage is one that the Makefile runs in its lane: make test those of the gate, make test-all the others, too.
func TestMakefileRunsEveryStage(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string][]string{}
	for line := range strings.Lines(string(makefile)) {
		if name, value, found := strings.Cut(line, ":="); found {
			runs[strings.TrimSpace(name)] = strings.Fields(value)
		}
	}
	var gate, all []string
	for i := range stages {
		if stages[i].lane == laneAll {
			all = append(all, stages[i].name)
		} else {
			gate = append(gate, stages[i].name)
		}
	}
	for variable, want := range map[string][]string{"TESTS": gate, "LONG": all} {
		got := runs[variable]
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("the Makefile's %s are %q, the stages are %q", variable, got, want)
		}
	}
}

// A stage names tests that exist.
func TestStagesNameTests(t *testing.T) {
	functions, err := testFunctions("../..")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range functions {
		known[f.name] = true
	}
	for _, s := range stages {
		for _, name := range append(s.only, s.without...) {
			if !known[name] {
				t.Errorf("stage %s names %s, which is no test", s.name, name)
			}
		}
	}
}

func TestSelectionWithoutMatch(t *testing.T) {
	t.Chdir("../..")
	for selected, ok := range map[string]bool{"": true, "TestMainJob": true, "TestMainJobDemo/x": true, "TestThatIsNotThere": false, "(": false, "TestFaults": false} {
		if _, err := matching([]string{"isolated", "serial"}, selected); (err == nil) != ok {
			t.Errorf("%q: %v", selected, err)
		}
	}
}

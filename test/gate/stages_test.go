package main

import (
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
			if stages[i].has(&f) {
				found = append(found, stages[i].name)
			}
		}
		if len(found) != 1 {
			t.Errorf("%s of %s is in the stages %q; it belongs to one, by a line of test/gate/stages.go", f.name, f.folder, found)
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

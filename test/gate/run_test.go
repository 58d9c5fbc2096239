package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The made-up failures of these tests are for nobody to read.
func TestMain(m *testing.M) {
	output = io.Discard
	os.Exit(m.Run())
}

// madeUp is a stage of a module of its own, with a test that passes and one with a body.
func madeUp(t *testing.T, body string) *stage {
	t.Helper()
	module := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module made.up\n\ngo 1.26\n",
		"it_test.go": "package it\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar _ = os.Exit\n\nfunc TestIt(t *testing.T) {\n\t" + body +
			"\n}\n\nfunc TestGood(t *testing.T) {}\n",
	} {
		if err := os.WriteFile(filepath.Join(module, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &stage{name: "made-up", module: module, packages: []string{"."}, flags: []string{"-count=1"}}
}

// What failed once runs again alone, and decides. What cannot be trusted after a failure is never run again.
func TestRunsOnceMore(t *testing.T) {
	const once = `
	if _, err := os.Stat("ran"); err != nil {
		os.WriteFile("ran", nil, 0o600)
		`
	for name, c := range map[string]struct {
		body       string
		passed     bool
		red, flaky []string
	}{
		"good":       {"", true, nil, nil},
		"flaky":      {once + `t.Log("first"); t.Fatal("too slow") }`, true, nil, []string{"TestIt: too slow"}},
		"subtest":    {`t.Run("sub", func(t *testing.T) {` + once + `t.Fatal("sub is slow") } })`, true, nil, []string{"TestIt: sub is slow"}},
		"bad":        {`t.Fatal("wrong")`, false, []string{"TestIt: wrong"}, nil},
		"panic":      {once + `panic("once") }`, false, []string{"TestIt: "}, nil},
		"no build":   {`undefined()`, false, []string{"made-up: the stage failed outside of a test"}, nil},
		"ended":      {once + `os.Exit(3) }`, false, []string{"TestIt: "}, nil},
		"other good": {`t.Run("sub", func(t *testing.T) { t.Skip("not here") })`, true, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir("../..")
			s := madeUp(t, c.body)
			folder := t.TempDir()
			_ = s.runTests(t.Context(), "", folder)
			results, err := loadResults(folder)
			if err != nil {
				t.Fatal(err)
			}
			v := &verdict{Stages: map[string]float64{}}
			v.add(results[0])
			if results[0].Passed != c.passed || !cmp.Equal(v.Red, c.red) || !cmp.Equal(v.Flaky, c.flaky) {
				t.Errorf("passed %v, red %q, flaky %q", results[0].Passed, v.Red, v.Flaky)
			}
		})
	}
}

// A failure is final in a stage that says so.
func TestOnceIsOnce(t *testing.T) {
	t.Chdir("../..")
	for body, passed := range map[string]bool{"": true, `if _, err := os.Stat("ran"); err != nil { os.WriteFile("ran", nil, 0o600); t.Fatal("too slow") }`: false} {
		s, folder := madeUp(t, body), t.TempDir()
		s.once = true
		if err := s.runTests(t.Context(), "", folder); (err == nil) != passed {
			t.Errorf("error %v, want passed = %v", err, passed)
		}
		if results, err := loadResults(folder); err != nil || len(results) != 1 || results[0].Passed != passed || len(results[0].Tests) != 2 {
			t.Errorf("results %+v, %v", results, err)
		}
	}
}

// A data race is final, although the test passes when it runs again.
func TestRaceIsFinal(t *testing.T) {
	t.Chdir("../..")
	s, folder := madeUp(t, `if _, err := os.Stat("ran"); err == nil { return }
	os.WriteFile("ran", nil, 0o600)
	n, done := 0, make(chan bool)
	go func() { n++; close(done) }()
	n++
	<-done`), t.TempDir()
	s.buildFlags = raced
	if err := s.runTests(t.Context(), "", folder); err == nil {
		t.Fatal("the stage passed")
	}
	results, err := loadResults(folder)
	if err != nil {
		t.Fatal(err)
	}
	if it := results[0].Tests[0]; len(it.Runs) != 1 || !strings.Contains(it.Runs[0].Output, "DATA RACE") {
		t.Errorf("the test ran %d times: %+v", len(it.Runs), it.Runs)
	}
}

// Two stages never run on one cluster at the same time.
func TestClaimCluster(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	release, err := claimCluster(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claimCluster(kubeconfig); err == nil || !strings.Contains(err.Error(), "wait until they have ended") {
		t.Errorf("a second stage gets %v", err)
	}
	release()
	release, err = claimCluster(kubeconfig)
	if err != nil {
		t.Fatalf("after the first stage: %v", err)
	}
	release()
}

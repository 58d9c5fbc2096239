package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// errTestsFailed is the error of a stage whose failures gotestsum has printed.
var errTestsFailed = errors.New("tests failed")

// output takes what gotestsum prints.
var output io.Writer = os.Stdout

// runTests runs the stage by gotestsum, and writes what it found into a folder. A test that fails runs once more when all others have
// ended, with nothing beside it. Nothing runs again after a panic, a data race, or a package that does not build.
func (s *stage) runTests(ctx context.Context, selected, folder string) error {
	if s.cluster != noCluster {
		if err := requireCluster(ctx); err != nil {
			return err
		}
		release, err := claimCluster(os.Getenv("KUBECONFIG"))
		if err != nil {
			return err
		}
		defer release()
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	events, err := filepath.Abs(filepath.Join(folder, s.name+".events"))
	if err != nil {
		return err
	}
	args := []string{"tool", "-modfile=" + absolute("tools.mod"), "gotestsum", "--format=testname", "--hide-summary=skipped", "--jsonfile=" + events}
	if !s.once {
		args = append(args, "--rerun-fails=1", "--rerun-fails-run-root-test", "--rerun-fails-abort-on-data-race")
	}
	switch packages := "--packages=" + strings.Join(s.packages, " "); {
	case s.cluster != noCluster:
		args = slices.Concat(args, []string{"--raw-command", "--", absolute("_output/bin/gate"), "exec", s.name}, s.selection(selected))
	case s.once:
		args = slices.Concat(args, []string{"--"}, s.goFlags(), s.packages, s.selection(selected), s.flags)
	default: // gotestsum takes the packages of tests that it runs again by a flag.
		args = slices.Concat(args, []string{packages, "--"}, s.goFlags(), s.selection(selected), s.flags)
	}
	began := time.Now()
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = absolute(s.module)
	command.Stdout, command.Stderr = output, output
	command.Env = append(s.environ(), "GOPROXY=off") // What tests need was fetched before; a download that fails is no failed test.
	if len(s.buildFlags) > 0 {
		command.Env = append(command.Env, "CGO_ENABLED=1")
	}
	runErr := command.Run()
	r, err := readResult(s.name, events)
	if err != nil {
		return errors.Join(err, runErr)
	}
	_, failed, _ := r.count()
	r.Seconds, r.Passed = time.Since(began).Seconds(), runErr == nil && failed == 0
	if err := r.save(folder); err != nil {
		return err
	}
	if exit := new(exec.ExitError); runErr != nil && !errors.As(runErr, &exit) {
		return runErr
	}
	if !r.Passed {
		return errTestsFailed
	}
	return nil
}

// goFlags are the flags with which the stage's tests are built. Nobody debugs them, and without what that takes they are linked sooner.
func (s *stage) goFlags() []string { return append([]string{"-ldflags=-s -w"}, s.buildFlags...) }

// requireCluster fails if no cluster answers.
func requireCluster(ctx context.Context) error {
	if os.Getenv("KUBECONFIG") == "" {
		return errors.New("KUBECONFIG names no cluster; call make test-cluster, which starts the dev cluster")
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "kubectl", "get", "--raw=/readyz", "--request-timeout=20s").CombinedOutput()
	if err != nil {
		return fmt.Errorf("the cluster of KUBECONFIG=%s does not answer: %s; start it with make cluster-up", os.Getenv("KUBECONFIG"),
			strings.Join(strings.Fields(string(out)), " "))
	}
	return nil
}

func absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		panic(err) // the present folder is gone
	}
	return abs
}

// claimCluster claims the cluster of a kubeconfig for one stage, until release is called or the process ends. Each stage installs Lockstep,
// which takes away what a test of another one has configured.
func claimCluster(kubeconfig string) (release func(), err error) {
	f, err := os.Open(filepath.SplitList(kubeconfig)[0])
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("other tests run on the cluster of %s: wait until they have ended (%w)", kubeconfig, err)
	}
	return func() { _ = f.Close() }, nil
}

// Command gate runs stages of tests (stages.go) by gotestsum, which runs what failed once more when all others have ended. It keeps
// the output of what failed, and writes down what each stage found. docs/testing.md describes the stages and lanes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: gate COMMAND

  find STAGE...      print the stages with tests that match -select REGEX
  build STAGE...     build the test binaries of stages on the cluster into _output/test
  run STAGE...       run stages; -select REGEX runs the tests that match, -results FOLDER takes what was found
  report STAGE...    write _output/gate.json from what the stages found, and print what was red and what was flaky
  fuzz               run each fuzz test for -time 10m with bounded memory; -select REGEX runs those that match
  soak               run the stages of the gate again and again: -passes 10; a soak that was stopped goes on
  exec STAGE         run the binaries of a stage; gotestsum calls it`

// resultsFolder is where the stages of the gate leave what they found.
const resultsFolder = "_output/gate"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := runCommand(ctx, os.Args[1:]); err != nil {
		if !errors.Is(err, errTestsFailed) {
			fmt.Fprintln(os.Stderr, "gate:", err)
		}
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func runCommand(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	if err := changeToRoot(); err != nil {
		return err
	}
	flags := flag.NewFlagSet("gate "+args[0], flag.ContinueOnError)
	selected := flags.String("select", "", "the tests to run, a regular expression as go test -run takes it; all by default")
	results := flags.String("results", resultsFolder, "the folder for what was found")
	long := flags.Duration("time", 10*time.Minute, "how long each fuzz test runs")
	passes := flags.Int("passes", 10, "how often a soak runs the gate")
	if args[0] == "exec" { // What follows are flags of the tests.
		return execute(ctx, args[1:])
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "build":
		return eachStage(flags.Args(), func(s *stage) error { return s.build(ctx) })
	case "find":
		names, err := matching(flags.Args(), *selected)
		fmt.Println(strings.Join(names, " "))
		return err
	case "run":
		names, err := matching(flags.Args(), *selected)
		if err != nil {
			return err
		}
		return eachStage(names, func(s *stage) error { return s.runTests(ctx, *selected, *results) })
	case "report":
		return report(ctx, *results, flags.Args())
	case "fuzz":
		return fuzz(ctx, *selected, *long)
	case "soak":
		return soak(ctx, *passes)
	}
	return errors.New(usage)
}

// changeToRoot makes the repository's root the present folder.
func changeToRoot() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "Makefile")); err == nil {
			return os.Chdir(dir)
		}
	}
	return errors.New("no folder from here up has a Makefile; call it inside the repository")
}

func eachStage(names []string, do func(*stage) error) error {
	if len(names) == 0 {
		return fmt.Errorf("name a stage\n\n%s", usage)
	}
	for _, name := range names {
		s, err := stageNamed(name)
		if err != nil {
			return err
		}
		if err := do(s); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// binary returns where the tests of a package of the stage are built.
func (s *stage) binary(pkg string) string {
	name := strings.ReplaceAll(strings.TrimPrefix(filepath.ToSlash(filepath.Join(s.module, pkg)), "test/"), "/", "-")
	return absolute(filepath.Join("_output", "test", name+".test"))
}

// build builds the test binaries of a stage on the cluster.
func (s *stage) build(ctx context.Context) error {
	for _, pkg := range s.packages {
		command := exec.CommandContext(ctx, "go", append([]string{"test", "-c", "-o", s.binary(pkg)}, append(s.goFlags(), pkg)...)...)
		command.Dir = absolute(s.module)
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("building the tests of %s: %w\n%s", pkg, err, out)
		}
	}
	return nil
}

// execute runs the binaries of a stage one after the other, with flags, and prints what happens as test2json does. It is gotestsum's
// command: to run a test again, gotestsum adds a flag that selects it, and its package.
func execute(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	s, err := stageNamed(args[0])
	if err != nil {
		return err
	}
	packages, flags := s.packages, append([]string{"-test.v=test2json", "-test.timeout=60m", "-test.paniconexit0"}, s.flags...)
	for _, arg := range args[1:] {
		if strings.HasPrefix(arg, "-") {
			flags = append(flags, arg)
		} else {
			packages = []string{arg}
		}
	}
	if s.cluster == serial {
		flags = append(flags, "-disruptive")
	}
	var failed error
	for _, pkg := range packages {
		if err := s.executePackage(ctx, pkg, flags); err != nil {
			failed = errTestsFailed
		}
	}
	return failed
}

func (s *stage) executePackage(ctx context.Context, pkg string, flags []string) error {
	program := s.binary(pkg)
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("%w; make prepare builds it", err)
	}
	command := exec.CommandContext(ctx, "go", append([]string{"tool", "test2json", "-t", "-p", pkg, program}, flags...)...)
	command.Dir = filepath.Join(s.module, pkg)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return command.Run()
}

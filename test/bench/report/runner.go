package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// runner runs make targets.
type runner struct {
	targets  []string
	rounds   int
	idle     float64
	patience time.Duration
	out      io.Writer
}

// run runs all targets, then all again: what changes with time changes all of them. It goes on after a target that fails.
func (r *runner) run(ctx context.Context, file string) error {
	report, failed := &Report{Machine: describeMachine(ctx)}, []error(nil)
	for round := range r.rounds {
		for _, target := range r.targets {
			load := r.awaitIdle(ctx)
			fmt.Fprintf(r.out, "== %s, run %d of %d, at %s with a load of %.2f\n", target, round+1, r.rounds, time.Now().Format(time.TimeOnly), load)
			if err := r.runTarget(ctx, report, target, load); err != nil {
				failed = append(failed, err)
				fmt.Fprintln(r.out, err)
			}
			if ctx.Err() != nil {
				return errors.Join(append(failed, ctx.Err())...)
			}
			if err := report.write(file); err != nil {
				return err
			}
		}
	}
	fmt.Fprint(r.out, report.markdown())
	return errors.Join(failed...)
}

func (r *runner) runTarget(ctx context.Context, report *Report, target string, load float64) error {
	cmd := exec.CommandContext(ctx, "make", target)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // a benchmark removes what it has made
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	count, readErr := report.addOutput(output, load, r.out)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("make %s: %w", target, err)
	}
	if readErr == nil && count == 0 {
		readErr = errors.New("it has no line RESULT")
	}
	if readErr != nil {
		return fmt.Errorf("make %s: %w", target, readErr)
	}
	return nil
}

// awaitIdle waits until the machine has nothing else to do, and returns its load.
func (r *runner) awaitIdle(ctx context.Context) float64 {
	deadline := time.Now().Add(r.patience)
	for {
		load := loadAverage()
		if load <= r.idle || time.Now().After(deadline) || ctx.Err() != nil {
			return load
		}
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
		}
	}
}

// loadAverage returns the load average of the last minute, as in proc(5).
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}

func describeMachine(ctx context.Context) Machine {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	m := Machine{
		Date: time.Now().Format(time.DateOnly), Processors: runtime.NumCPU(), Memory: memory(), Kernel: strings.TrimSpace(string(kernel)),
		Versions: map[string]string{"go": strings.TrimPrefix(runtime.Version(), "go")},
	}
	for name, command := range map[string][]string{
		"bind": {"named", "-v"}, "lockstep": {"git", "describe", "--always", "--dirty"}, "kubernetes": {"go", "-C", "test/cluster", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes"},
	} {
		if output, err := exec.CommandContext(ctx, command[0], command[1:]...).Output(); err == nil {
			m.Versions[name] = strings.TrimSpace(string(output))
		}
	}
	return m
}

// memory returns the machine's memory in GiB, as in proc(5).
func memory() int {
	text, _ := os.ReadFile("/proc/meminfo")
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	kib, _ := strconv.Atoi(fields[1])
	return (kib + 1<<19) >> 20
}

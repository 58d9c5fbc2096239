// Command report runs benchmarks again and again, and makes a table of what they say.
//
//	report run [-rounds 3] [-idle 0.5] [-o FILE] TARGET...   runs make targets, and writes their results as JSON
//	report table FILE                                        prints them as Markdown
//	report update FILE DOCUMENT                              puts them into the table of a document, which stays as it is otherwise
//	report compare OLD NEW                                   compares two files; it fails when something is slower than before
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runCommand(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func runCommand(ctx context.Context, args []string) error {
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "run":
		return runTargets(ctx, args)
	case "table":
		return printTable(args)
	case "update":
		return updateFile(args)
	case "compare":
		return compareFiles(args)
	}
	return fmt.Errorf("%q is none of run, table, update and compare; see the head of test/bench/report/main.go", command)
}

func runTargets(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	r := runner{out: os.Stdout}
	flags.IntVar(&r.rounds, "rounds", 3, "how often each target runs")
	flags.Float64Var(&r.idle, "idle", 0.5, "the load average of the last minute that the machine has to come down to before each run")
	flags.DurationVar(&r.patience, "patience", 5*time.Minute, "how long to wait for that; then the run begins, and its load stands in the table")
	file := flags.String("o", "bench.json", "the file that gets the results; it is written after each run")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if r.targets = flags.Args(); len(r.targets) == 0 {
		return fmt.Errorf("no target is named, such as bench-get")
	}
	return r.run(ctx, *file)
}

func printTable(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("table needs a file of results")
	}
	report, err := readReport(args[0])
	if err != nil {
		return err
	}
	fmt.Print(report.markdown())
	return nil
}

func compareFiles(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("compare needs an old and a new file of results")
	}
	before, err := readReport(args[0])
	if err != nil {
		return err
	}
	after, err := readReport(args[1])
	if err != nil {
		return err
	}
	text, slower := compareReports(before, after)
	fmt.Print(text)
	if len(slower) > 0 {
		return fmt.Errorf("slower than before, beyond the spread of both: %v", slower)
	}
	return nil
}

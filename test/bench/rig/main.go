package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Main runs a benchmark on a fleet in the namespace bench-<name> and removes both when it is done, interrupted or has
// failed. It parses the flags; with -clear it only removes what an earlier run has left behind.
func Main(name string, run func(context.Context, *Rig) error) {
	onlyClear := flag.Bool("clear", false, "remove what an interrupted run has left behind, and do nothing else")
	keep := flag.Bool("keep", false, "leave everything in place afterwards, to look at it; -clear removes it")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runBenchmark(ctx, stop, name, *onlyClear, *keep, run); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

func runBenchmark(ctx context.Context, stop func(), name string, onlyClear, keep bool, run func(context.Context, *Rig) error) (err error) {
	r, err := connectRig(name)
	if err != nil {
		return err
	}
	if onlyClear {
		return r.removeEverything(ctx)
	}
	if err := r.createNamespace(ctx); err != nil {
		return err
	}
	defer func() {
		stop() // A second interrupt ends the clearing too.
		if keep {
			fmt.Printf("namespace %s is kept; remove it with: %s\n", r.Namespace, clearCommand(name))
		} else if clearErr := r.removeEverything(context.WithoutCancel(ctx)); clearErr != nil {
			err = errors.Join(err, clearErr)
		}
		r.printResults()
	}()
	if err := r.startFleet(ctx); err != nil {
		return err
	}
	return r.runOnOneController(ctx, run)
}

// runOnOneController runs a benchmark and fails it when the controller was not the same all the time.
func (r *Rig) runOnOneController(ctx context.Context, run func(context.Context, *Rig) error) error {
	controller, err := r.ControllerState(ctx)
	if err != nil {
		return err
	}
	r.controllerStarted = controller.Started
	if err := run(ctx, r); err != nil {
		return err
	}
	if controller, err = r.ControllerState(ctx); err != nil {
		return err
	}
	if !controller.Started.Equal(r.controllerStarted) {
		return fmt.Errorf("the controller was started anew at %s, in the middle of the run; see kubectl --namespace %s logs --previous deployment/lockstep-controller",
			controller.Started.Format(time.TimeOnly), system)
	}
	return nil
}

func clearCommand(name string) string { return "go run ./test/bench/" + name + " -clear" }

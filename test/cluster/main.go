// Command cluster runs a real single-node Kubernetes on this machine, built
// from Go modules, and the images that the project runs on it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/lockstep-dns/lockstep/test/cluster/internal/cluster"
	"github.com/lockstep-dns/lockstep/test/cluster/internal/progress"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := runCommand(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1) //nolint:gocritic // stop only frees what the exit frees as well
	}
}

func runCommand(ctx context.Context, args []string) error {
	command, err := findCommand(args)
	if err != nil {
		return err
	}
	root, err := findRepository()
	if err != nil {
		return err
	}
	if err := addSystemPath(); err != nil {
		return err
	}
	c, err := cluster.New(root, progress.New(os.Stderr))
	if err != nil {
		return err
	}
	return command(ctx, c)
}

// findRepository finds the project's folder, from the present one up.
func findRepository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "test", "cluster", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("this is not inside the project's repository; call the command from there")
		}
	}
}

// addSystemPath makes iptables and its like findable for a root whose PATH is
// a user's.
func addSystemPath() error {
	return os.Setenv("PATH", os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin")
}

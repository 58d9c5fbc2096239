package kube

import (
	"fmt"
	"sync"
	"testing"
)

var installation struct {
	once sync.Once
	err  error
}

// install makes sure that Lockstep runs in the cluster, once for all tests of a process.
func install(t testing.TB) {
	t.Helper()
	installation.once.Do(func() { installation.err = runInstall(t) })
	if installation.err != nil {
		t.Fatal(installation.err)
	}
}

// Reinstall installs Lockstep after a test has removed it.
func Reinstall(t testing.TB) {
	t.Helper()
	if err := runInstall(t); err != nil {
		t.Fatal(err)
	}
}

// InstallOverlay installs Lockstep from another overlay than usual, which sets the namespace.
func InstallOverlay(t testing.TB, overlay, namespace string) {
	t.Helper()
	if err := runInstall(t, "OVERLAY="+overlay, "NAMESPACE="+namespace); err != nil {
		t.Fatal(err)
	}
}

func runInstall(t testing.TB, environment ...string) error {
	t.Helper()
	Config(t)
	if out, err := runCommand(Root(t), "", "env", append(environment, "test/install")...); err != nil {
		return fmt.Errorf("installing Lockstep: %w\n%s", err, out)
	}
	return nil
}

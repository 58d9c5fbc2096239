package vantage

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace: what is done in it is done by one thread, which stays there, and so do the processes that it starts.
type namespace struct {
	t    *testing.T
	path string
	work chan func() // nil for that of this process
}

// ownNamespace is the namespace of this process.
func ownNamespace(t *testing.T) *namespace {
	t.Helper()
	n := &namespace{t: t, path: fmt.Sprintf("/proc/%d/ns/net", unix.Getpid())}
	n.ip("link set lo up")
	return n
}

// newNamespace makes a namespace that ends with the test.
func newNamespace(t *testing.T) *namespace {
	t.Helper()
	n := &namespace{t: t, work: make(chan func())}
	ready := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		n.path = fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid())
		ready <- unix.Unshare(unix.CLONE_NEWNET)
		for f := range n.work {
			f()
		}
	}()
	if err := <-ready; err != nil {
		t.Fatalf("making a network namespace, which root may: %v", err)
	}
	n.path = strings.Replace(n.path, "/self/", fmt.Sprintf("/%d/", unix.Getpid()), 1)
	t.Cleanup(func() { close(n.work) })
	n.ip("link set lo up")
	return n
}

// do calls f in the namespace. If f ends the test, the namespace ends with it.
func (n *namespace) do(f func()) {
	n.t.Helper()
	if n.work == nil {
		f()
		return
	}
	done := make(chan struct{})
	n.work <- func() {
		defer close(done)
		f()
	}
	<-done
	if n.t.Failed() {
		n.t.FailNow()
	}
}

// ip runs an ip(8) command in the namespace.
func (n *namespace) ip(command string) {
	n.t.Helper()
	n.do(func() {
		if out, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			n.t.Errorf("ip %s: %v: %s", command, err, out)
		}
	})
}

// connect makes a link from the namespace to another one, by the names of both ends.
func (n *namespace) connect(end string, other *namespace, otherEnd string) {
	n.t.Helper()
	n.ip(fmt.Sprintf("link add %s type veth peer name %s netns %s", end, otherEnd, other.path))
	n.ip("link set " + end + " up")
	other.ip("link set " + otherEnd + " up")
}

// Package daemon runs DNS servers of other makers for tests: child processes on free loopback ports, stopped when the test ends. A test
// that cannot find a program fails and says how to get it.
package daemon

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/named"
)

// Find returns the path of a program of a Debian package.
func Find(t testing.TB, program, debian string) string {
	t.Helper()
	for _, path := range []string{program, "/usr/sbin/" + program} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	t.Fatalf("%s is not there: test/setup/install test, or apt-get install %s", program, debian)
	return ""
}

// WithClock starts programs whose clock is off by so much; other tests may not start any at the same time. BIND does not start so: its
// allocator asks for the time before libfaketime can answer.
func WithClock(t testing.TB, off time.Duration, start func()) {
	t.Helper()
	libraries, _ := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if len(libraries) == 0 {
		t.Fatal("libfaketime is not there: test/setup/install test, or apt-get install faketime")
	}
	for name, value := range map[string]string{
		"LD_PRELOAD": libraries[0], "FAKETIME": fmt.Sprintf("%+d", int(off.Seconds())), "DONT_FAKE_MONOTONIC": "1",
	} {
		if err := os.Setenv(name, value); err != nil { //nolint:usetesting // Only what is started here has another clock.
			t.Fatal(err)
		}
		defer func() { _ = os.Unsetenv(name) }()
	}
	start()
}

// Program is a program as it is started.
type Program struct {
	Path string
	Args []string
	// Env are variables beside those of the test.
	Env []string
	// Listens are the addresses, given by named.Reserve, that it will listen on.
	Listens []netip.AddrPort
}

// Process is a program that runs, and can be killed and started again.
type Process struct {
	t       testing.TB
	program Program
	log     string
	cmd     *exec.Cmd
}

// Launch runs a program until the test ends; if that fails, it shows the end of the program's log.
func Launch(t testing.TB, program Program) *Process {
	t.Helper()
	p := &Process{t: t, program: program, log: filepath.Join(t.TempDir(), "log")}
	p.Start()
	t.Cleanup(func() {
		p.Kill()
		if text, err := os.ReadFile(p.log); err == nil && t.Failed() {
			t.Logf("the end of the log of %s %v:\n%s", program.Path, program.Args, text[max(0, len(text)-10_000):])
		}
	})
	return p
}

// Start runs the program again.
func (p *Process) Start() {
	p.t.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(p.program.Path, p.program.Args...)
	p.cmd.Env = append(os.Environ(), p.program.Env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	named.Release(p.t, p.program.Listens...)
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// Kill ends the process, if it runs.
func (p *Process) Kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

// Start launches a program, and waits until it serves zones at an address, which named.Reserve gave.
func Start(t testing.TB, program string, args []string, at netip.AddrPort, zones []string) {
	t.Helper()
	Launch(t, Program{Path: program, Args: args, Listens: []netip.AddrPort{at}})
	for _, zone := range zones {
		waitServed(t, at, zone)
	}
}

// Run runs a program to its end, which has to be a good one.
func Run(t testing.TB, program string, args ...string) {
	t.Helper()
	if output, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", program, strings.Join(args, " "), err, output)
	}
}

func waitServed(t testing.TB, at netip.AddrPort, zone string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		reply, err := wire.Query(t.Context(), at, zone, dns.TypeSOA, wire.WithTimeout(time.Second))
		if err == nil && reply.Msg.Authoritative {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not serve %s: %v", at, zone, err)
		}
	}
}

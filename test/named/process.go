package named

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const startTimeout = 20 * time.Second

// process is one named in its directory. What it prints and logs is kept in files there.
type process struct {
	dir, config string
	// listens are the addresses that named will listen on.
	listens []netip.AddrPort
	// waitReady returns when named serves, or with the reason why it does not.
	waitReady func(deadline time.Time) error

	command *exec.Cmd
	exited  chan struct{}
}

// start runs named until the test ends.
func (p *process) start(t testing.TB) {
	t.Helper()
	p.run(t)
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("log of named at %s:\n%s", p.listens[0], lastLines(p.Log()))
		}
	})
}

func (p *process) run(t testing.TB) {
	t.Helper()
	path := findNamed(t)
	Release(t, p.listens...)
	output, err := os.OpenFile(filepath.Join(p.dir, "output"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }()
	// One thread is enough, and tests share few cores.
	p.command = exec.Command(path, "-f", "-4", "-n", "1", "-c", p.config)
	p.command.Stdout, p.command.Stderr = output, output
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.command.Start(); err != nil {
		t.Fatalf("starting named: %v", err)
	}
	command, exited := p.command, make(chan struct{})
	p.exited = exited
	go func() {
		_ = command.Wait()
		close(exited)
	}()
	if err := p.waitReady(time.Now().Add(startTimeout)); err != nil {
		t.Fatalf("named at %s: %v\n%s", p.listens[0], err, lastLines(p.Log()))
	}
}

func findNamed(t testing.TB) string {
	t.Helper()
	for _, path := range []string{os.Getenv("NAMED"), "/usr/sbin/named"} {
		if path != "" && exec.Command(path, "-v").Run() == nil {
			return path
		}
	}
	path, err := exec.LookPath("named")
	if err != nil {
		t.Fatal("this test needs BIND 9.18 or newer: `apt-get install bind9`, or set NAMED to the path of named")
	}
	return path
}

// waitFor polls until ok reports true, named has ended, or the deadline has passed.
func (p *process) waitFor(deadline time.Time, failure string, ok func() bool) error {
	for !ok() {
		select {
		case <-p.exited:
			return errors.New("named exited")
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s after %s", failure, startTimeout)
		}
	}
	return nil
}

// Stop ends the server and waits for its end. It may be called more than once.
func (p *process) Stop() { p.end(syscall.SIGTERM) }

// Kill ends the server without giving it time to write anything.
func (p *process) Kill() { p.end(syscall.SIGKILL) }

// Pause makes the server silent until Resume. It returns when all of its threads stand still.
func (p *process) Pause() {
	_ = p.command.Process.Signal(syscall.SIGSTOP)
	for range 1000 {
		if p.isStopped() {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (p *process) isStopped() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.command.Process.Pid))
	for _, path := range threads {
		stat, err := os.ReadFile(path)
		if _, state, _ := strings.Cut(string(stat), ") "); err == nil && !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// Resume ends a Pause.
func (p *process) Resume() { _ = p.command.Process.Signal(syscall.SIGCONT) }

// Restart ends the server and starts it again: same directory, same addresses.
func (p *process) Restart(t testing.TB) {
	t.Helper()
	p.Stop()
	p.run(t)
}

func (p *process) end(sig syscall.Signal) {
	if p.command == nil || p.command.Process == nil {
		return
	}
	_ = p.command.Process.Signal(syscall.SIGCONT)
	_ = p.command.Process.Signal(sig)
	select {
	case <-p.exited:
	case <-time.After(10 * time.Second):
		_ = p.command.Process.Kill()
		<-p.exited
	}
}

// Log returns what the server has printed and logged so far.
func (p *process) Log() string {
	var all strings.Builder
	for _, name := range []string{"output", "named.log"} {
		text, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err.Error()
		}
		all.Write(text)
	}
	return all.String()
}

func lastLines(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// Package named runs real BIND servers for tests: child processes on free loopback ports, each with a directory of its
// own, stopped when the test ends. A test that cannot find named fails and says how to get it.
//
//	primary, secondaries := named.StartFleet(t, 2, named.Zone{Name: "example.test."})
//	reply, err := wire.Query(ctx, primary.Addr, "example.test.", dns.TypeSOA)
//
// The servers are set up as the project's own are: transfers and NOTIFY by key, zones updated by key, no delays.
package named

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
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

	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// Role of a server.
type Role string

// The roles.
const (
	Primary   Role = "primary"
	Secondary Role = "secondary"
)

// Options of a server. The zero value is a primary without zones.
type Options struct {
	Role Role
	// Addr and Control are what Reserve gave; reserved by Start when zero.
	Addr, Control netip.AddrPort
	// Update and Transfer are the keys with those rights. Made at random when empty; a secondary takes its primary's.
	Update, Transfer wire.Key
	// Keys are known to the server and have no rights.
	Keys []wire.Key
	// Zones to serve. A secondary needs their names only.
	Zones []Zone
	// Primary is where a secondary transfers from, or from AlsoPrimaries, which know the same transfer key.
	Primary       *Server
	AlsoPrimaries []netip.AddrPort
	// AlsoNotify are the secondaries' addresses.
	AlsoNotify []netip.AddrPort
	// Extra is put into named.conf's options as it is.
	Extra string
	// NoWait returns before the zones are loaded.
	NoWait bool
}

// Server is one running named.
type Server struct {
	// Addr answers DNS over UDP and TCP, Control speaks the rndc protocol with the key in ControlKey.
	Addr, Control netip.AddrPort
	ControlKey    wire.Key
	// Update and Transfer are the keys with those rights.
	Update, Transfer wire.Key
	// Dir is its working directory: named.conf, zone files, named.log.
	Dir string

	options Options
	token   string
	process *exec.Cmd
	exited  chan struct{}
}

// NewKey makes a random HMAC-SHA256 key.
func NewKey(name string) wire.Key {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	return wire.Key{Name: name, Algorithm: "hmac-sha256.", Secret: base64.StdEncoding.EncodeToString(secret)}
}

// StartFleet starts a primary and so many secondaries of the zones, and waits until all serve them.
func StartFleet(t testing.TB, secondaries int, zones ...Zone) (*Server, []*Server) {
	t.Helper()
	o := Options{Role: Primary, Zones: zones}
	addrs := make([]netip.AddrPort, secondaries)
	for i := range addrs {
		addrs[i] = Reserve(t)
	}
	o.AlsoNotify = addrs
	primary := Start(t, o)
	all := make([]*Server, secondaries)
	for i := range all {
		all[i] = Start(t, Options{Role: Secondary, Addr: addrs[i], Primary: primary, Zones: zones})
	}
	return primary, all
}

// Start runs a server and waits until it serves its zones. It is stopped when the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	path := find(t)
	s := newServer(t, o)
	if err := s.writeFiles(); err != nil {
		t.Fatalf("writing the configuration of named: %v", err)
	}
	s.run(t, path)
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("log of named at %s:\n%s", s.Addr, tail(s.Log()))
		}
	})
	return s
}

func find(t testing.TB) string {
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

func newServer(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Role == "" {
		o.Role = Primary
	}
	if o.Role == Secondary && o.Primary == nil {
		t.Fatal("a secondary needs Options.Primary")
	}
	if o.Primary != nil {
		o.Transfer = o.Primary.Transfer
	}
	for _, def := range []struct {
		key  *wire.Key
		name string
	}{{&o.Update, "update."}, {&o.Transfer, "transfer."}} {
		if *def.key == (wire.Key{}) {
			*def.key = NewKey(def.name)
		}
	}
	for _, addr := range []*netip.AddrPort{&o.Addr, &o.Control} {
		if !addr.IsValid() {
			*addr = Reserve(t)
		}
	}
	return &Server{
		Addr: o.Addr, Control: o.Control, ControlKey: NewKey("rndc-key."),
		Update: o.Update, Transfer: o.Transfer,
		Dir: t.TempDir(), options: o, token: rand.Text(),
	}
}

func (s *Server) run(t testing.TB, path string) {
	t.Helper()
	release(t, s.Addr, s.Control)
	var stderr bytes.Buffer
	// One thread is enough, and tests share few cores.
	s.process = exec.Command(path, "-f", "-4", "-n", "1", "-c", s.path("named.conf")) //nolint:gosec // a test's own file
	s.process.Stderr = &stderr
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		t.Fatalf("starting named: %v", err)
	}
	process, exited := s.process, make(chan struct{})
	s.exited = exited
	go func() {
		_ = process.Wait()
		close(exited)
	}()
	if err := s.waitReady(); err != nil {
		t.Fatalf("named at %s: %v\n%s\n%s", s.Addr, err, stderr.String(), tail(s.Log()))
	}
}

// Stop ends the server and waits for its end. It may be called more than once.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Kill ends the server without giving it time to write anything.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Pause makes the server silent until Resume. It returns when all of its threads stand still.
func (s *Server) Pause() {
	_ = s.process.Process.Signal(syscall.SIGSTOP)
	for range 1000 {
		if s.stopped() {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (s *Server) stopped() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.process.Process.Pid))
	for _, path := range threads {
		stat, err := os.ReadFile(path) //nolint:gosec // of our own child
		if _, state, _ := strings.Cut(string(stat), ") "); err == nil && !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// Resume ends a Pause.
func (s *Server) Resume() { _ = s.process.Process.Signal(syscall.SIGCONT) }

// Restart starts a server that was stopped again: same directory, same addresses.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop()
	s.run(t, find(t))
}

func (s *Server) end(sig syscall.Signal) {
	if s.process == nil || s.process.Process == nil {
		return
	}
	_ = s.process.Process.Signal(syscall.SIGCONT)
	_ = s.process.Process.Signal(sig)
	select {
	case <-s.exited:
	case <-time.After(10 * time.Second):
		_ = s.process.Process.Kill()
		<-s.exited
	}
}

// Rndc runs an rndc command on the server and returns what it printed.
func (s *Server) Rndc(args ...string) (string, error) {
	args = append([]string{"-s", s.Control.Addr().String(), "-p", fmt.Sprint(s.Control.Port()), "-k", s.path("rndc.key")}, args...)
	out, err := exec.Command("rndc", args...).CombinedOutput() //nolint:gosec // a test's own arguments
	if err != nil {
		err = fmt.Errorf("rndc %s: %w", strings.Join(args[6:], " "), err)
	}
	return string(out), err
}

// Log is what the server has logged so far.
func (s *Server) Log() string {
	b, err := os.ReadFile(s.path("named.log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err.Error()
	}
	return string(b)
}

func (s *Server) path(name string) string { return filepath.Join(s.Dir, name) }

func tail(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// Package nsd runs real NSD servers for tests, as secondaries: child processes, each with a directory of its own, stopped when the
// test ends. A test that cannot find nsd fails and says how to get it.
package nsd

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/daemon"
	"github.com/lockstep-dns/lockstep/test/named"
)

// Options of a server.
type Options struct {
	// Addr is where it answers, given by named.Reserve or named.FreeAddress.
	Addr netip.AddrPort
	// Zone is transferred from Primary with Key, which may also notify and transfer.
	Zone    string
	Primary netip.AddrPort
	Key     wire.Key
}

// Server is a running nsd.
type Server struct {
	Options
	t       testing.TB
	dir     string
	command *exec.Cmd
}

// Start runs a server. It may have no data yet.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{Options: o, t: t, dir: t.TempDir()}
	s.start()
	t.Cleanup(func() {
		s.Stop()
		if text, err := os.ReadFile(filepath.Join(s.dir, "nsd.log")); err == nil && t.Failed() {
			t.Logf("log of nsd at %s:\n%s", s.Addr, text)
		}
	})
	return s
}

// Restart stops the server and runs it with another key.
func (s *Server) Restart(key wire.Key) {
	s.t.Helper()
	s.Stop()
	s.Key = key
	s.start()
}

// Stop ends the server. Its data stays.
func (s *Server) Stop() {
	if s.command != nil {
		_ = s.command.Process.Signal(syscall.SIGTERM) // It ends its children, which SIGKILL would leave behind.
		_ = s.command.Wait()
		s.command = nil
	}
}

func (s *Server) start() {
	s.t.Helper()
	file := filepath.Join(s.dir, "nsd.conf")
	if err := os.WriteFile(file, []byte(s.config()), 0o600); err != nil {
		s.t.Fatal(err)
	}
	command := exec.Command(daemon.Find(s.t, "nsd", "nsd"), "-d", "-c", file)
	named.Release(s.t, s.Addr)
	if err := command.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.command = command
}

func (s *Server) config() string {
	return fmt.Sprintf(`server:
  ip-address: %[1]s@%[2]d
  server-count: 1
  username: ""
  zonesdir: %[3]q
  zonelistfile: %[4]q
  xfrdfile: %[5]q
  xfrdir: %[3]q
  database: ""
  pidfile: ""
  logfile: %[6]q
  verbosity: 2
remote-control:
  control-enable: no
key:
  name: %[7]q
  algorithm: %[8]s
  secret: %[9]q
zone:
  name: %[10]q
  zonefile: zone
  request-xfr: %[11]s@%[12]d %[7]s
  allow-notify: 0.0.0.0/0 %[7]s
  provide-xfr: 0.0.0.0/0 %[7]s
`, s.Addr.Addr(), s.Addr.Port(), s.dir, filepath.Join(s.dir, "zone.list"), filepath.Join(s.dir, "xfrd.state"), filepath.Join(s.dir, "nsd.log"),
		s.Key.Name, strings.TrimSuffix(s.Key.Algorithm, "."), s.Key.Secret, s.Zone, s.Primary.Addr(), s.Primary.Port())
}

// Package knot runs real Knot DNS servers for tests: child processes on free loopback ports, each with a directory of its own,
// stopped when the test ends. A test that cannot find knotd fails and says how to get it.
package knot

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/wire"
	"github.com/lockstep-dns/lockstep/test/named"
)

// Server is one running knotd with zones that the key Update may update and the key Transfer transfer.
type Server struct {
	Addr             netip.AddrPort
	Update, Transfer wire.Key
}

// Start runs a server with zones, each with an SOA, a name server and the records of its text, and waits until it serves them.
// The options are lines for each zone, such as "dnssec-signing: on", or "acl: [update, query]" where no transfer is allowed.
func Start(t testing.TB, zones map[string]string, options ...string) *Server {
	t.Helper()
	program, err := exec.LookPath("knotd")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/knotd"); err != nil {
			t.Fatal("knotd is not there: test/setup/install test, or apt-get install knot")
		}
	}
	s := &Server{Addr: freePort(t), Update: named.NewKey("update."), Transfer: named.NewKey("transfer.")}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "knot.conf"), s.config(dir, zones, options))
	for name, records := range zones {
		text := fmt.Sprintf("$ORIGIN %s\n$TTL 300\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\n%s", name, records)
		write(t, filepath.Join(dir, strings.TrimSuffix(name, ".")+".zone"), text)
	}
	log, err := os.Create(filepath.Join(dir, "knotd.log"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "-c", filepath.Join(dir, "knot.conf"))
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("log of knotd at %s:\n%s", s.Addr, text)
		}
	})
	s.waitServed(t, zones)
	return s
}

func (s *Server) config(dir string, zones map[string]string, options []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "server:\n  rundir: %q\n  listen: %s@%d\nlog:\n- target: stderr\n  any: info\ndatabase:\n  storage: %q\nkey:\n", dir, s.Addr.Addr(), s.Addr.Port(), dir)
	for _, k := range []wire.Key{s.Update, s.Transfer} {
		fmt.Fprintf(&b, "- id: %s\n  algorithm: %s\n  secret: %s\n", k.Name, strings.TrimSuffix(k.Algorithm, "."), k.Secret)
	}
	fmt.Fprintf(&b, "acl:\n- id: update\n  key: %s\n  action: update\n- id: transfer\n  key: %s\n  action: transfer\n- id: query\n  key: %[2]s\n  action: query\n", s.Update.Name, s.Transfer.Name)
	fmt.Fprintf(&b, "template:\n- id: default\n  storage: %q\n  file: \"%%s.zone\"\n  zonefile-sync: -1\nzone:\n", dir)
	if !slices.ContainsFunc(options, func(line string) bool { return strings.HasPrefix(line, "acl:") }) {
		options = append(slices.Clone(options), "acl: [update, transfer]")
	}
	for name := range zones {
		fmt.Fprintf(&b, "- domain: %s\n", name)
		for _, line := range options {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	return b.String()
}

func (s *Server) waitServed(t testing.TB, zones map[string]string) {
	t.Helper()
	for name := range zones {
		for deadline := time.Now().Add(time.Minute); ; {
			reply, err := wire.Query(t.Context(), s.Addr, name, dns.TypeSOA)
			if err == nil && reply.Msg.Authoritative {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("knotd does not serve %s: %v", name, err)
			}
		}
	}
}

func freePort(t testing.TB) netip.AddrPort {
	t.Helper()
	ports, err := named.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(ports[0]))
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

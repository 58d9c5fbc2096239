// Package knot runs real Knot DNS servers for tests: child processes on free loopback ports, each with a directory of its own,
// stopped when the test ends. A test that cannot find knotd fails and says how to get it.
package knot

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/daemon"
	"github.com/lockstep-dns/lockstep/test/named"
)

// Server is one running knotd with zones that the key Update may update and the key Transfer transfer.
type Server struct {
	Addr             netip.AddrPort
	Update, Transfer wire.Key
	dir              string
}

// Options say how a server runs.
type Options struct {
	// Zones, each with an SOA, a name server and the records of its text.
	Zones map[string]string
	// TTL of the zones' records; 300 if it is 0.
	TTL int
	// Lines are those of each zone, such as "dnssec-signing: on", or "acl: [update, query]" where no transfer is allowed.
	Lines []string
	// Sections are further ones of the configuration.
	Sections string
}

// Start runs a server with zones, and waits until it serves them. The lines are those of Options.
func Start(t testing.TB, zones map[string]string, lines ...string) *Server {
	t.Helper()
	return StartWith(t, Options{Zones: zones, Lines: lines})
}

// StartWith runs a server, and waits until it serves its zones.
func StartWith(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{Addr: named.Reserve(t), Update: named.NewKey("update."), Transfer: named.NewKey("transfer."), dir: t.TempDir()}
	s.Configure(t, o)
	for name, records := range o.Zones {
		text := fmt.Sprintf("$ORIGIN %s\n$TTL %d\n@ SOA ns1 hostmaster 1 3600 600 86400 %d\n@ NS ns1\nns1 A 192.0.2.1\n%s", name, cmp.Or(o.TTL, 300), cmp.Or(o.TTL, 60), records)
		write(t, filepath.Join(s.dir, strings.TrimSuffix(name, ".")+".zone"), text)
	}
	daemon.Start(t, daemon.Find(t, "knotd", "knot"), []string{"-c", s.file()}, s.Addr, slices.Collect(maps.Keys(o.Zones)))
	return s
}

func (s *Server) file() string { return filepath.Join(s.dir, "knot.conf") }

// Configure writes the configuration, which Control's "reload" has a running server read.
func (s *Server) Configure(t testing.TB, o Options) {
	t.Helper()
	write(t, s.file(), s.config(s.dir, o))
}

// Control sends a command.
func (s *Server) Control(t testing.TB, args ...string) {
	t.Helper()
	daemon.Run(t, daemon.Find(t, "knotc", "knot"), append([]string{"-c", s.file()}, args...)...)
}

func (s *Server) config(dir string, o Options) string {
	options := o.Lines
	var b strings.Builder
	fmt.Fprintf(&b, "server:\n  rundir: %q\n  listen: %s@%d\nlog:\n- target: stderr\n  any: info\ndatabase:\n  storage: %q\nkey:\n", dir, s.Addr.Addr(), s.Addr.Port(), dir)
	for _, k := range []wire.Key{s.Update, s.Transfer} {
		fmt.Fprintf(&b, "- id: %s\n  algorithm: %s\n  secret: %s\n", k.Name, strings.TrimSuffix(k.Algorithm, "."), k.Secret)
	}
	fmt.Fprintf(&b, "acl:\n- id: update\n  key: %s\n  action: update\n- id: transfer\n  key: %s\n  action: transfer\n- id: query\n  key: %[2]s\n  action: query\n", s.Update.Name, s.Transfer.Name)
	b.WriteString(o.Sections)
	fmt.Fprintf(&b, "template:\n- id: default\n  storage: %q\n  file: \"%%s.zone\"\n  zonefile-sync: -1\nzone:\n", dir)
	if !slices.ContainsFunc(options, func(line string) bool { return strings.HasPrefix(line, "acl:") }) {
		options = append(slices.Clone(options), "acl: [update, transfer]")
	}
	for name := range o.Zones {
		fmt.Fprintf(&b, "- domain: %s\n", name)
		for _, line := range options {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	return b.String()
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

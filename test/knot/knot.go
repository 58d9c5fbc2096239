// Package knot runs real Knot DNS servers for tests: child processes on free loopback ports, each with a directory of its own,
// stopped when the test ends. A test that cannot find knotd fails and says how to get it.
package knot

import (
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
}

// Start runs a server with zones, each with an SOA, a name server and the records of its text, and waits until it serves them.
// The options are lines for each zone, such as "dnssec-signing: on", or "acl: [update, query]" where no transfer is allowed.
func Start(t testing.TB, zones map[string]string, options ...string) *Server {
	t.Helper()
	s := &Server{Addr: named.Reserve(t), Update: named.NewKey("update."), Transfer: named.NewKey("transfer.")}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "knot.conf"), s.config(dir, zones, options))
	for name, records := range zones {
		text := fmt.Sprintf("$ORIGIN %s\n$TTL 300\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\n%s", name, records)
		write(t, filepath.Join(dir, strings.TrimSuffix(name, ".")+".zone"), text)
	}
	daemon.Start(t, dir, daemon.Find(t, "knotd", "knot"), []string{"-c", filepath.Join(dir, "knot.conf")}, s.Addr, slices.Collect(maps.Keys(zones)))
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

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

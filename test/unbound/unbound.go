// Package unbound runs Debian's unbound for tests: a validating resolver that trusts one key and asks nobody but the servers that it is
// told. It also has a client of one, which asks all the time and misses nothing.
package unbound

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/test/daemon"
	"github.com/lockstep-dns/lockstep/test/named"
)

// Config says what a resolver knows.
type Config struct {
	// At is a loopback address, of named.Reserve.
	At netip.AddrPort
	// Anchor is the key that is trusted.
	Anchor *dns.DNSKEY
	// Servers are those of each zone that is resolved.
	Servers map[string][]netip.AddrPort
	// Server are further lines of the clause server, and Stub those of the clause of each zone.
	Server, Stub []string
}

// Find returns the path of unbound.
func Find(t testing.TB) string {
	t.Helper()
	return daemon.Find(t, "unbound", "unbound")
}

// Write writes the configuration into a folder, and returns the arguments for unbound.
func (c Config) Write(dir string) (arguments []string, err error) {
	server := append([]string{
		fmt.Sprintf("interface: %s@%d", c.At.Addr(), c.At.Port()), "do-daemonize: no", "use-syslog: no", "verbosity: 0",
		`chroot: ""`, `username: ""`, `pidfile: ""`, fmt.Sprintf("directory: %q", dir), "num-threads: 1", "do-ip6: no", "do-not-query-localhost: no",
		`module-config: "validator iterator"`, `trust-anchor-file: "anchor"`, "qname-minimisation: no", "ede: yes", "outgoing-range: 64", "num-queries-per-thread: 32",
	}, c.Server...)
	var stubs strings.Builder
	for zone, servers := range c.Servers {
		labels := dns.SplitDomainName(zone)
		// Unbound answers for some top-level domains by itself, "test." among them.
		if line := fmt.Sprintf("local-zone: %q nodefault", labels[len(labels)-1]+"."); !slices.Contains(server, line) {
			server = append(server, line)
		}
		lines := append([]string{fmt.Sprintf("name: %q", zone)}, c.Stub...)
		for _, at := range servers {
			lines = append(lines, fmt.Sprintf("stub-addr: %s@%d", at.Addr(), at.Port()))
		}
		stubs.WriteString(clause("stub-zone", lines))
	}
	path := filepath.Join(dir, "unbound.conf")
	if err := os.WriteFile(filepath.Join(dir, "anchor"), []byte(c.Anchor.String()+"\n"), 0o600); err != nil {
		return nil, err
	}
	return []string{"-c", path}, os.WriteFile(path, []byte(clause("server", server)+stubs.String()), 0o600)
}

func clause(name string, lines []string) string {
	return name + ":\n  " + strings.Join(lines, "\n  ") + "\n"
}

// Start runs a resolver until the test ends, and returns its address.
func Start(t testing.TB, anchor *dns.DNSKEY, servers map[string][]netip.AddrPort) netip.AddrPort {
	t.Helper()
	dir, at := t.TempDir(), named.Reserve(t)
	arguments, err := Config{At: at, Anchor: anchor, Servers: servers}.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	daemon.Start(t, Find(t), arguments, at, nil)
	return at
}

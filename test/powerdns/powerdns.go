// Package powerdns runs real PowerDNS servers for tests: child processes on free loopback ports, each with a directory of its own, stopped
// when the test ends. A test that cannot find pdns_server fails and says how to get it.
package powerdns

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

// Server is one running server.
type Server struct {
	Addr netip.AddrPort
	// Update and Transfer are the keys with those rights.
	Update, Transfer wire.Key
	dir              string
}

// schemaFile is what the Debian package has for a new database.
const schemaFile = "/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql"

// Start runs a server with zones in SQLite, each with the records of its text, which the key Update may update and the key
// Transfer transfer. metadata are settings of each zone, such as SOA-EDIT. With PUBLISH-CDS, zones may be signed.
func Start(t testing.TB, zones, metadata map[string]string) *Server {
	t.Helper()
	s := &Server{Addr: named.Reserve(t), Update: named.NewKey("update."), Transfer: named.NewKey("transfer."), dir: t.TempDir()}
	database, signs := filepath.Join(s.dir, "pdns.sqlite3"), "no"
	if _, publishes := metadata["PUBLISH-CDS"]; publishes {
		signs = "yes"
	}
	s.write(t, "pdns.conf", strings.Join([]string{
		"launch=gsqlite3", "gsqlite3-database=" + database, "gsqlite3-pragma-synchronous=0", "gsqlite3-dnssec=" + signs, "daemon=no", "guardian=no", "socket-dir=" + s.dir,
		fmt.Sprintf("local-address=%s\nlocal-port=%d", s.Addr.Addr(), s.Addr.Port()),
		"primary=yes", "dnsupdate=yes", "allow-dnsupdate-from=0.0.0.0/0", "allow-axfr-ips=", "receiver-threads=1", "distributor-threads=1",
	}, "\n"))
	daemon.Run(t, "python3", "-c", "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(open(sys.argv[2]).read())", database, schemaFile)
	util := func(args ...string) { s.Util(t, args...) }
	update, transfer := strings.TrimSuffix(s.Update.Name, "."), strings.TrimSuffix(s.Transfer.Name, ".")
	util("import-tsig-key", update, algorithm(s.Update), s.Update.Secret)
	util("import-tsig-key", transfer, algorithm(s.Transfer), s.Transfer.Secret)
	for name, records := range zones {
		zone := strings.TrimSuffix(name, ".")
		util("load-zone", zone, s.writeZone(t, name, records))
		util("set-meta", zone, "TSIG-ALLOW-DNSUPDATE", update)
		util("set-meta", zone, "TSIG-ALLOW-AXFR", transfer)
		for kind, value := range metadata {
			util("set-meta", zone, kind, value)
		}
	}
	daemon.Start(t, daemon.Find(t, "pdns_server", "pdns-server"), []string{"--config-dir=" + s.dir}, s.Addr, slices.Collect(maps.Keys(zones)))
	return s
}

// Util changes what the server has. It hears of that within a minute.
func (s *Server) Util(t testing.TB, args ...string) {
	t.Helper()
	daemon.Run(t, "pdnsutil", append([]string{"--config-dir=" + s.dir}, args...)...)
}

// writeZone writes a zone file with an SOA, a name server and the records of a text.
func (s *Server) writeZone(t testing.TB, zone, records string) (file string) {
	t.Helper()
	return s.write(t, strings.TrimSuffix(zone, ".")+".zone", fmt.Sprintf(
		"$ORIGIN %s\n$TTL 300\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\n%s", zone, records))
}

func (s *Server) write(t testing.TB, name, text string) (file string) {
	t.Helper()
	file = filepath.Join(s.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func algorithm(k wire.Key) string { return strings.TrimSuffix(k.Algorithm, ".") }

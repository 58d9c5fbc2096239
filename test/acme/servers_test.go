package acme

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/zonefile"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
	testnamed "github.com/lockstep-dns/lockstep/test/named"
)

// world are the servers of the guide: one of example.com, one of the zones for challenges, and a resolver that knows both.
type world struct {
	dns, challenges *testnamed.Pod
	resolver        netip.AddrPort
	authority       authority
}

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{dns: startServer(t, "dns"), challenges: startServer(t, "challenges")}
	addZone(t, w.dns, "example.com", "_acme-challenge.www CNAME www.acme\nacme NS ns1.acme\nns1.acme A 192.0.2.54\n_acme-challenge.api NS ns1.acme\nwww A 192.0.2.10\n")
	addZone(t, w.challenges, "acme.example.com", "")
	addZone(t, w.challenges, "_acme-challenge.api.example.com", "")
	w.resolver = startResolver(t, map[string]netip.AddrPort{
		"example.com": w.dns.DNS(), "acme.example.com": w.challenges.DNS(), "_acme-challenge.api.example.com": w.challenges.DNS(),
	})
	w.authority = startAuthority(t, w.resolver)
	return w
}

// startServer starts a primary of a cluster as the fleet manager configures it, with a key as that makes it.
func startServer(t *testing.T, cluster string) *testnamed.Pod {
	t.Helper()
	key, err := named.NewKey("acme", cluster, named.KeyUpdate)
	if err != nil {
		t.Fatal(err)
	}
	return testnamed.StartPod(t, v1beta1.RolePrimary, [2]*wire.Key{key}, nil)
}

// zoneText is a zone file with an SOA, an NS record, and lines. Resolvers remember for seconds what is not there, as in the guide's zones.
func zoneText(name, lines string) string {
	return fmt.Sprintf("$ORIGIN %s.\n$TTL 60\n@ SOA ns1 hostmaster 1 3600 600 86400 5\n@ NS ns1.example.net.\n%s", name, lines)
}

// addZone adds a zone by the clause that the sidecar gives it.
func addZone(t *testing.T, server *testnamed.Pod, name, lines string) {
	t.Helper()
	file := filepath.Join(server.Layout.ZonesDir, name+".zone")
	if err := os.WriteFile(file, []byte(zoneText(name, lines)), 0o600); err != nil {
		t.Fatal(err)
	}
	description := zonefile.Description{Name: name, Type: bindcar.Primary, UpdateKeyName: server.UpdateKey.Name}
	control := rndc.NewClient(server.ControlAddr(), server.Control)
	defer func() { _ = control.Close() }()
	if _, err := control.Command(t.Context(), fmt.Sprintf("addzone %q %s", name, description.Clause(file))); err != nil {
		t.Fatal(err)
	}
}

// startResolver starts a resolver that asks servers for the names in zones.
func startResolver(t *testing.T, servers map[string]netip.AddrPort) netip.AddrPort {
	t.Helper()
	var zones strings.Builder
	for name, addr := range servers {
		fmt.Fprintf(&zones, "zone %q { type forward; forward only; forwarders { %s port %d; }; };\n", name, addr.Addr(), addr.Port())
	}
	return testnamed.Start(t, testnamed.Options{Resolver: zones.String()}).Addr
}

// keyFile is a file with the update key of a server, as the guide has it read from the Secret.
func keyFile(t *testing.T, server *testnamed.Pod) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "challenges.key")
	if err := os.WriteFile(file, named.KeyData(server.UpdateKey)[named.KeyClauseEntry], 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// requireNoTXT fails the test if a server has a challenge.
func requireNoTXT(t *testing.T, server *testnamed.Pod, name string) {
	t.Helper()
	reply, err := wire.Query(t.Context(), server.DNS(), name, dns.TypeTXT)
	if err != nil || len(reply.Msg.Answer) > 0 {
		t.Errorf("%s is left: %v, %v", name, reply.Msg, err)
	}
}

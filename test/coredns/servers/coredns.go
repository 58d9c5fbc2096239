package servers

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/test/named"
)

// CoreDNS is one server.
type CoreDNS struct{ Addr netip.AddrPort }

// StartCoreDNS starts a server of zones in etcd. The block is what the plugin gets beside endpoints and path; more are other plugins.
func StartCoreDNS(t testing.TB, e *Etcd, zones []string, block, more string) *CoreDNS {
	t.Helper()
	addr := named.Reserve(t)
	corefile := filepath.Join(t.TempDir(), "Corefile")
	text := fmt.Sprintf(".:%d {\n bind %s\n errors\n %s\n etcd %s {\n path /skydns\n endpoint %s\n %s\n }\n}\n",
		addr.Port(), addr.Addr(), more, strings.Join(zones, " "), strings.Join(e.Endpoints, " "), block)
	if err := os.WriteFile(corefile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	launch(t, "coredns", []netip.AddrPort{addr}, "-conf", corefile)
	c := &CoreDNS{addr}
	c.AwaitReady(t, zones[0])
	return c
}

// AwaitReady waits until the server answers from etcd. After a restart of etcd that is when the server has connected again, which it
// tries at growing intervals.
func (c *CoreDNS) AwaitReady(t testing.TB, zone string) {
	t.Helper()
	Eventually(t, "CoreDNS does not answer", func() error {
		reply, err := c.Exchange("ready."+zone, dns.TypeA)
		if err == nil && reply.Rcode == dns.RcodeServerFailure {
			err = errors.New(reply.String())
		}
		return err
	})
}

// Exchange asks as a resolver does.
func (c *CoreDNS) Exchange(name string, rrtype uint16) (*dns.Msg, error) {
	query := new(dns.Msg)
	query.SetQuestion(name, rrtype)
	query.RecursionDesired = false
	client := dns.Client{Timeout: 10 * time.Second, UDPSize: 4096}
	reply, _, err := client.Exchange(query, c.Addr.String())
	if err == nil && reply.Truncated {
		client.Net = "tcp"
		reply, _, err = client.Exchange(query, c.Addr.String())
	}
	return reply, err
}

// Ask returns what the server answers for a name and type. If the answer has something else at that name, or several TTLs, the RRset has
// the TTL 0.
func (c *CoreDNS) Ask(t testing.TB, key rrset.Key) rrset.RRset {
	t.Helper()
	reply, err := c.Exchange(key.Name, key.Type)
	if err != nil {
		t.Fatal(err)
	}
	set, mixed := rrset.RRset{Key: key}, false
	for _, rr := range reply.Answer {
		got, ttl, rdata := rrset.FromRR(rr)
		if got != key {
			mixed = mixed || got.Name == key.Name
			continue
		}
		mixed = mixed || len(set.Rdata) > 0 && set.TTL != ttl
		set = rrset.New(key, ttl, append(set.Rdata, rdata)...)
	}
	if mixed {
		set.TTL = 0
	}
	return set
}

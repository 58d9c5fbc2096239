package reconcile

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/dnsprovider"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/test/daemon"
	"github.com/lockstep-dns/lockstep/test/knot"
	bind "github.com/lockstep-dns/lockstep/test/named"
	"github.com/lockstep-dns/lockstep/test/powerdns"
)

// nameServer resolves the host name corp.names.test, whose address changes.
type nameServer struct{ *bind.Server }

func startNameServer(t *testing.T) nameServer {
	return nameServer{bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "names.test."}}})}
}

func (n nameServer) resolver() dnsprovider.Resolver {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, n.Addr.String())
	}
	resolver := &net.Resolver{PreferGo: true, Dial: dial}
	return dnsprovider.Resolver{Names: outbound.Resolver{Lookup: resolver.LookupNetIP, Permit: netip.Addr.IsValid}}
}

func (n nameServer) setAddress(t *testing.T, address netip.Addr) {
	t.Helper()
	sendRecord(t, n.Server, "names.test.", &dns.A{Hdr: dns.RR_Header{Name: "corp.names.test.", Rrtype: dns.TypeA, Class: dns.ClassINET}, A: address.AsSlice()})
}

// sendRecord replaces an RRset by a record.
func sendRecord(t *testing.T, s *bind.Server, zone string, rr dns.RR) {
	t.Helper()
	m := new(dns.Msg).SetUpdate(zone)
	m.RemoveRRset([]dns.RR{rr})
	m.Insert([]dns.RR{rr})
	s.SendUpdate(t, m)
}

// When a host name has another address, the server there is asked and written, and the former one no longer. That both have the zone under
// the same SOA says nothing about its content.
func TestProviderByHostName(t *testing.T) {
	r, names := newBareRig(t), startNameServer(t)
	port := bind.Reserve(t).Port()
	options := bind.Options{Update: bind.NewKey("update."), Transfer: bind.NewKey("transfer."), Zones: []bind.Zone{{Name: rigZone}}}
	at := map[*bind.Server]netip.AddrPort{}
	start := func(ip string) *bind.Server {
		s := bind.Start(t, options)
		at[s] = bind.StartProxyAt(t, netip.AddrPortFrom(netip.MustParseAddr(ip), port), s.Addr).Addr
		return s
	}
	former, next := start("127.0.0.2"), start("127.0.0.3")
	p := r.provide("corp", []*bind.Server{former})
	p.Spec.RFC2136.Primaries = []v1beta1.ProviderServer{{Address: "corp.names.test", Port: int32(port)}}
	passAt := func(s *bind.Server) passResult {
		t.Helper()
		names.setAddress(t, at[s].Addr())
		p.Status.Servers = names.resolver().Resolve(t.Context(), p, p.Status.Servers)
		r.scope.servers = serving.AddProviders(nil, r.scope.providers)
		if got := r.scope.servers[0].Addr; got != at[s] {
			t.Fatalf("the provider is at %s, want %s: %s", got, at[s], r.scope.servers[0].Message)
		}
		return r.mustSync()
	}
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	passAt(former)
	if got := served(t, next, "www"); len(got) > 0 {
		t.Errorf("the server that the name does not have has %v", got)
	}
	sendRecord(t, next, rigZone, rrset.ToSOA(rigZone, r.look(former).SOA))
	if got, want := r.look(next).SOA, r.look(former).SOA; got != want {
		t.Fatalf("the new server has the SOA %+v, want %+v", got, want)
	}
	for n, address := range []string{"192.0.2.10", "192.0.2.11"} {
		r.zones.Set(r.a("www", int64(n+1), address))
		if out := r.outcomeOf(passAt(next), "corp"); !out.Current || out.Server.Addr != at[next] {
			t.Errorf("outcome %+v", out)
		}
		if got := served(t, next, "www"); !slices.Equal(got, []string{address}) {
			t.Errorf("the new server has %v, want %s", got, address)
		}
		if got := served(t, former, "www"); !slices.Equal(got, []string{"192.0.2.10"}) {
			t.Errorf("the former server has %v", got)
		}
	}
	former.Stop()
	r.zones.Set(r.a("www", 3, "192.0.2.12"))
	passAt(next)
}

// A server whose clock is off is reported with its words and what to do, and nobody else is hindered.
func TestProviderWithAnotherClock(t *testing.T) {
	for name, c := range map[string]struct {
		start func(t *testing.T) *bind.Server
		says  []string
	}{
		"Knot": {func(t *testing.T) *bind.Server {
			s := knot.Start(t, map[string]string{rigZone: ""})
			return &bind.Server{Addr: s.Addr, Update: s.Update, Transfer: s.Transfer}
		}, []string{"BADTIME", "clock differs", "; set the server's clock"}},
		"PowerDNS": {func(t *testing.T) *bind.Server {
			s := powerdns.Start(t, map[string]string{rigZone: ""}, nil)
			return &bind.Server{Addr: s.Addr, Update: s.Update, Transfer: s.Transfer}
		}, []string{"NOTAUTH", "clock differs", "see that its clock is right"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, bind.Zone{})
			var outside *bind.Server
			daemon.WithClock(t, time.Hour, func() { outside = c.start(t) })
			r.provide("corp", []*bind.Server{outside})
			r.zones.Set(r.a("www", 1, "192.0.2.10"))
			p := r.pass()
			r.holds("www", "192.0.2.10")
			for _, want := range append(c.says, "corp") {
				if p.event.Programmed.Holds() || !strings.Contains(p.event.Programmed.Message, want) {
					t.Errorf("the problem %q does not say %q", p.event.Programmed.Message, want)
				}
			}
		})
	}
}

// A zone that an instance signs is not put on a provider's primary, which could not have its signatures. It is signed and served as before.
func TestProviderOfASignedZone(t *testing.T) {
	r := signedRig(t, "default", "")
	outside := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: rigZone, Records: "legacy 300 A 192.0.2.77\n"}}})
	before := r.look(outside).SOA
	r.provide("corp", []*bind.Server{outside})
	r.zones.Set(r.a("www", 1, "192.0.2.7"))
	p := r.await("signing", isSigned)
	r.holds("www", "192.0.2.7")
	if out := r.outcomeOf(p, "corp"); !errors.Is(out.Err, host.ErrSignedHere) {
		t.Errorf("outcome %+v", out)
	}
	if problem := p.event.Programmed; problem.Holds() || !strings.Contains(problem.Message, "corp") || !strings.Contains(problem.Message, "set dnssecPolicy to none") {
		t.Errorf("problem %+v", problem)
	}
	if err := bind.Validate(t.Context(), r.primary[0].Addr, p.event.DNSSEC.DSRecords, "www.example.test.", dns.TypeA); err != nil {
		t.Error(err)
	}
	if after := r.look(outside).SOA; after != before || len(served(t, outside, "www")) > 0 {
		t.Errorf("the provider's server was at %+v and is at %+v", before, after)
	}
}

// Connections of a pass with the servers of a DNSProvider are the provider's, and those with instances, which others use as well, are
// not counted. Both are made to permitted addresses alone.
func TestConnectionsOfPass(t *testing.T) {
	zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "z"}}
	pod, provided := netip.MustParseAddrPort("192.0.2.1:53"), netip.MustParseAddrPort("192.0.2.2:53")
	above := netip.MustParseAddrPort("192.0.2.3:53")
	parent := scope{servers: []observe.Server{{Addr: above, Namespace: "parents", Provider: "above"}}}
	s := scope{zone: zone, parents: []scope{parent}, servers: []observe.Server{{Addr: pod, Namespace: "platform", Instance: "p"}, {Addr: provided, Namespace: "team", Provider: "corp"}}}
	gate := outbound.NewGate(nil, outbound.Limits{})
	of := s.accounts(gate)
	for at, want := range map[string]*outbound.Account{
		pod.String(): gate.Instances("team"), provided.String(): dnsprovider.AccountOf(gate, "team", "corp"), "192.0.2.2:5353": gate.Instances("team"),
		above.String(): dnsprovider.AccountOf(gate, "parents", "above"),
	} {
		if got := of(at); *got != *want {
			t.Errorf("%s: %+v, want %+v", at, got, want)
		}
	}
	if got := s.accounts(nil)(provided.String()); got != nil {
		t.Errorf("without a gate: %+v", got)
	}
}

package registry

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

const (
	above   = "example.test."
	below   = "shop." + above
	shopDS  = "1 13 2 0000000000000000000000000000000000000000000000000000000000000001"
	ownName = "ns1." + below
)

// dsync is the text of a DSYNC record, as servers that do not know the type take it.
func dsync(rrtype uint16, scheme byte, port uint16, target string) string {
	data := append(binary.BigEndian.AppendUint16(nil, rrtype), scheme)
	data = binary.BigEndian.AppendUint16(data, port)
	wire := make([]byte, 255)
	end, err := dns.PackDomainName(target, wire, 0, nil, false)
	if err != nil {
		panic(err)
	}
	data = append(data, wire[:end]...)
	return fmt.Sprintf(`TYPE66 \# %d %s`, len(data), hex.EncodeToString(data))
}

// newRegistry returns a Registry of a named that has a zone with these records; host names lead to its address.
func newRegistry(t *testing.T, records string) *Registry {
	s := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: above, Records: records}}})
	return &Registry{
		LookupNS: func(_ context.Context, name string) ([]*net.NS, error) {
			if name != above {
				return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
			}
			return []*net.NS{{Host: "ns1." + above}, {Host: "ns2." + above}}, nil
		},
		Names: outbound.Resolver{Permit: netip.Addr.IsValid, Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{s.Addr.Addr()}, nil
		}},
		Gate: outbound.NewGate(netip.Addr.IsValid, outbound.Limits{}),
		Port: s.Addr.Port(),
	}
}

func (r *Registry) find(t *testing.T, name string, servers ...string) *Delegation {
	t.Helper()
	d, err := r.Find(t.Context(), "team", name, servers)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestFind: all name servers of the closest zone above are asked, if that delegates the zone to its own name servers.
func TestFind(t *testing.T) {
	r := newRegistry(t, "shop NS ns1.shop\nns1.shop A 192.0.2.1\nshop DS "+shopDS+"\nbare NS ns1.bare\nns1.bare A 192.0.2.1\n")
	d := r.find(t, below, ownName)
	if d == nil || d.Name != "example.test" || !d.IsElsewhere || len(d.Servers) != 2 {
		t.Fatalf("%+v", d)
	}
	for _, a := range d.Servers {
		if !a.IsKnown || !slices.Equal(a.DS, []string{shopDS}) || a.TTL == 0 {
			t.Errorf("%+v", a)
		}
	}
	if d := r.find(t, "bare."+above, "ns1.bare."+above); d == nil || !d.Servers[0].IsKnown || len(d.Servers[0].DS) > 0 {
		t.Errorf("without DS records: %+v", d)
	}
	if d := r.find(t, below, "ns1.evil.test."); d != nil {
		t.Errorf("delegated to others: %+v", d)
	}
	if d := r.find(t, "none."+above, "ns1.none."+above); d != nil {
		t.Errorf("not delegated: %+v", d)
	}
	if d := r.find(t, "a.b.test.", "ns1.a.b.test."); d != nil {
		t.Errorf("no zone above has name servers: %+v", d)
	}
}

// TestLameServer: a name server of the zone above that does not know of the delegation takes nothing back, and a silent one leaves it open.
func TestLameServer(t *testing.T) {
	r := newRegistry(t, "shop NS ns1.shop\nns1.shop A 192.0.2.1\nshop DS "+shopDS+"\n")
	lame, err := net.Listen("tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), r.Port).String())
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{Listener: lame, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) {
		_ = w.WriteMsg(new(dns.Msg).SetRcode(m, dns.RcodeNameError))
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	hosts := map[string]string{}
	r.Names.Lookup = func(_ context.Context, _, host string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr(hosts[host])}, nil
	}
	const good, bad, silent = "127.0.0.1", "127.0.0.2", "127.0.0.3"
	hosts["ns1."+above], hosts["ns2."+above] = bad, good
	if d := r.find(t, below, ownName); d == nil || d.Servers[0].IsKnown || !d.Servers[1].IsKnown {
		t.Errorf("%+v", d)
	}
	hosts["ns2."+above] = bad
	if d := r.find(t, below, ownName); d != nil {
		t.Errorf("nobody delegates: %+v", d)
	}
	hosts["ns2."+above] = silent
	if d, err := r.Find(t.Context(), "team", below, []string{ownName}); err == nil {
		t.Errorf("who knows? %+v", d)
	}
}

// TestForbiddenAddresses: whoever controls the names of a zone above leads no question to this host, or to what only this host may reach.
func TestForbiddenAddresses(t *testing.T) {
	r := newRegistry(t, "shop NS ns1.shop\nns1.shop A 192.0.2.1\n")
	open := r.Names
	for name, names := range map[string]outbound.Resolver{
		"resolver": {Lookup: open.Lookup}, // Permits decides.
		"gate":     open,
	} {
		r.Names, r.Gate = names, outbound.NewGate(nil, outbound.Limits{})
		if d, err := r.Find(t.Context(), "team", below, []string{ownName}); err == nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// listener is who a registry names for NOTIFYs.
type listener struct {
	at   netip.AddrPort
	mu   sync.Mutex
	took []string
}

func newListener(t *testing.T, rcode int) *listener {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{at: conn.LocalAddr().(*net.UDPAddr).AddrPort()}
	server := &dns.Server{PacketConn: conn, MsgAcceptFunc: func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) {
		l.mu.Lock()
		l.took = append(l.took, fmt.Sprint(dns.OpcodeToString[m.Opcode], " ", m.Question[0].Name, " ", dns.TypeToString[m.Question[0].Qtype]))
		l.mu.Unlock()
		_ = w.WriteMsg(new(dns.Msg).SetRcode(m, rcode))
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	return l
}

func (l *listener) messages() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.took)
}

// TestNotify: whom the zone above names for the zone gets one NOTIFY, else whom it names for all zones.
func TestNotify(t *testing.T) {
	one, all, refuses := newListener(t, dns.RcodeSuccess), newListener(t, dns.RcodeSuccess), newListener(t, dns.RcodeRefused)
	cut := func(name string) string { return fmt.Sprintf("%s NS ns1.%s\nns1.%s A 192.0.2.1\n", name, name, name) }
	r := newRegistry(t, cut("shop")+cut("other")+cut("sorry")+
		"shop._dsync "+dsync(dns.TypeCDS, 1, one.at.Port(), "scanner.test.")+"\n"+
		"shop._dsync "+dsync(dns.TypeCSYNC, 1, refuses.at.Port(), "scanner.test.")+"\n"+
		"sorry._dsync "+dsync(dns.TypeCDS, 1, refuses.at.Port(), "scanner.test.")+"\n"+
		"_dsync "+dsync(dns.TypeCDS, 1, all.at.Port(), "scanner.test.")+"\n")
	for name, noted := range map[string]bool{"shop.": true, "other.": true, "sorry.": false} {
		zone := name + above
		targets, ok := r.Notify(t.Context(), "team", zone, r.find(t, zone, "ns1."+zone))
		if targets != 1 || ok != noted {
			t.Errorf("%s: %d targets, noted %t", name, targets, ok)
		}
	}
	for l, want := range map[*listener]string{one: "NOTIFY " + below + " CDS", all: "NOTIFY other." + above + " CDS", refuses: "NOTIFY sorry." + above + " CDS"} {
		if got := l.messages(); !slices.Equal(got, []string{want}) {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

// TestHostileTargets: a zone above that names many targets, or this host, has nobody flooded.
func TestHostileTargets(t *testing.T) {
	victim := newListener(t, dns.RcodeSuccess)
	var records strings.Builder
	records.WriteString("shop NS ns1.shop\nns1.shop A 192.0.2.1\n")
	for i := range 100 {
		records.WriteString("_dsync " + dsync(dns.TypeCDS, 1, victim.at.Port(), fmt.Sprintf("v%d.test.", i)) + "\n")
	}
	r := newRegistry(t, records.String())
	d := r.find(t, below, ownName)
	if targets, _ := r.Notify(t.Context(), "team", below, d); targets != maxTargets || len(victim.messages()) != maxTargets {
		t.Errorf("%d targets, %d messages, want %d", targets, len(victim.messages()), maxTargets)
	}
	began := len(victim.messages())
	r.Names.Permit = nil // What the resolver of the installation does.
	if targets, noted := r.Notify(t.Context(), "team", below, d); targets > 0 || noted || len(victim.messages()) != began {
		t.Errorf("%d targets, noted %t, %d messages to this host", targets, noted, len(victim.messages())-began)
	}
}

// TestTarpit: name servers that accept connections and say nothing hold a look up for a bounded time.
func TestTarpit(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	r := newRegistry(t, "")
	r.Port = silent.Addr().(*net.TCPAddr).AddrPort().Port()
	r.Names.Lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	began := time.Now()
	if d, err := r.Find(t.Context(), "team", below, []string{ownName}); err == nil {
		t.Errorf("%+v", d)
	}
	if took := time.Since(began); took > lookTimeout+timeout {
		t.Errorf("it took %s", took)
	}
}

func FuzzTarget(f *testing.F) {
	f.Add([]byte{0, 59, 1, 0, 53, 1, 'a', 0})
	f.Add([]byte{0, 59, 1, 0, 53, 0xc0, 5})
	f.Fuzz(func(t *testing.T, data []byte) {
		rr := &dns.RFC3597{Hdr: dns.RR_Header{Name: "_dsync.test.", Rrtype: typeDSYNC, Class: dns.ClassINET}, Rdata: hex.EncodeToString(data)}
		if got, ok := parseTarget(rr, "_dsync.test."); ok && (got.port == 0 || got.host == "." || got.host == "") {
			t.Errorf("%x: %+v", data, got)
		}
	})
}

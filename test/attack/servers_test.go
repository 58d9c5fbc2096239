package attack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/heap"
	"github.com/lockstep-dns/lockstep/test/kube"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// startBomb runs a server that has every zone: with the serial 1, and with a transfer of NS records that
// take two bytes of rdata on the wire and a thousand characters in memory.
func startBomb(t *testing.T) netip.AddrPort {
	t.Helper()
	ports, err := namedtest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(ports[0]))
	serial := dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg)
		m.SetReply(r)
		m.Authoritative, m.Answer = true, []dns.RR{bombSOA(r.Question[0].Name)}
		_ = w.WriteMsg(m)
	})
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	if err != nil {
		t.Fatal(err)
	}
	udp := &dns.Server{PacketConn: conn, Handler: serial}
	go func() { _ = udp.ActivateAndServe() }()
	tcp := &dns.Server{Listener: listener, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		if r.Question[0].Qtype == dns.TypeSOA {
			serial(w, r)
			return
		}
		// Without limits that is a quarter of a gigabyte.
		for sent := 0; sent < 2<<20; {
			size, err := w.Write(bombMessage(r, sent == 0))
			if sent += size; err != nil {
				return
			}
		}
		_ = w.Close()
	})}
	go func() { _ = tcp.ActivateAndServe() }()
	t.Cleanup(func() { _ = errors.Join(udp.Shutdown(), tcp.Shutdown()) })
	return addr
}

func bombSOA(zone string) dns.RR {
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: 60},
		Ns:  "ns.", Mbox: "hm.", Serial: 1, Refresh: 1, Retry: 1, Expire: 1, Minttl: 1,
	}
}

// bombMessage is a message of a transfer in wire format, filled up with NS records whose owner and rdata are pointers to one
// name of 255 bytes that do not print.
func bombMessage(r *dns.Msg, first bool) []byte {
	m := new(dns.Msg)
	m.SetReply(r)
	m.Question = nil
	if first {
		m.Answer = []dns.RR{bombSOA(r.Question[0].Name)}
	}
	raw, err := m.Pack()
	if err != nil {
		panic(err)
	}
	at := len(raw)
	var name []byte
	for _, size := range []int{63, 63, 63, 61} {
		name = append(append(name, byte(size)), bytes.Repeat([]byte{1}, size)...)
	}
	count := uint16(len(m.Answer))
	pointer := []byte{0xC0 | byte(at>>8), byte(at)}
	for owner, rdata := append(name, 0), []byte{0}; len(raw)+len(owner)+12 <= dns.MaxMsgSize; owner, rdata = pointer, pointer {
		raw = append(raw, owner...)
		raw = append(raw, 0, byte(dns.TypeNS), 0, dns.ClassINET, 0, 0, 0, 60, 0, byte(len(rdata)))
		raw = append(raw, rdata...)
		count++
	}
	binary.BigEndian.PutUint16(raw[6:], count)
	return raw
}

// Four servers of one namespace send transfers that explode in memory, at the same time and again and again. That takes
// the memory that the limits say, and the zone of another namespace is read meanwhile.
func TestAttack08Bombs(t *testing.T) {
	kube.WithoutCluster(t)
	const limit, servers = 8 << 20, 4
	honest := namedtest.Start(t, namedtest.Options{Zones: []namedtest.Zone{{Name: "bank.example.", Records: "www A 192.0.2.1"}}})
	o := observe.New(observe.Options{Limits: observe.Limits{ZoneBytes: limit, TotalBytes: 4 * limit}})
	server, zone := observe.Peer{Addr: honest.Addr, Namespace: "bank"}, observe.Zone{Namespace: "bank", Name: "bank.example."}
	peak := heap.Peak(func() {
		var attacks sync.WaitGroup
		for i := range servers {
			bomb := startBomb(t)
			attacks.Go(func() {
				for n := range 4 {
					obs := o.Observe(t.Context(), observe.Peer{Addr: bomb, Namespace: "evil", Provider: "bomb"}, observe.Zone{Namespace: "evil", Name: fmt.Sprintf("evil%d-%d.example.", i, n)}, nil, time.Now())
					if !errors.Is(obs.Err, wire.ErrTooLarge) || !strings.Contains(obs.Err.Error(), bomb.String()) {
						t.Errorf("the bomb is answered with %+v", obs)
					}
				}
			})
		}
		for range servers {
			o.Forget(server, zone)
			if obs := o.Observe(t.Context(), server, zone, &honest.Transfer, time.Now()); obs.Mirror == nil {
				t.Errorf("another namespace's zone is not read: %v", obs.Err)
			}
		}
		attacks.Wait()
	})
	t.Logf("at most %d MiB were taken", peak>>20)
	// The account is of decoded data; garbage and buffers come on top. Without limits it is a gigabyte.
	if peak > 24*limit {
		t.Errorf("%d MiB were taken with limits of %d for a zone and %d in all", peak>>20, limit>>20, 4*limit>>20)
	}
}

// Between us and a server, somebody takes the signature off the SOA, or repeats it with the serial that we expect. Either way it
// is no evidence that the zone is unchanged.
func TestAttack15UnsignedSOA(t *testing.T) {
	kube.WithoutCluster(t)
	s := namedtest.Start(t, namedtest.Options{Zones: []namedtest.Zone{{Name: "bank.example.", Serial: 7}}})
	between := namedtest.StartProxy(t, s.Addr)
	o := observe.New(observe.Options{})
	if seen := o.Serial(t.Context(), observe.Peer{Addr: between.Addr}, "bank.example.", &s.Transfer); seen.Err != nil || seen.Serial != 7 {
		t.Fatalf("undisturbed: %+v", seen)
	}
	for name, forge := range map[string]func(*dns.Msg){
		"without signature": func(m *dns.Msg) { m.Extra = nil },
		"another serial": func(m *dns.Msg) {
			for _, rr := range m.Answer {
				if soa, ok := rr.(*dns.SOA); ok {
					soa.Serial++
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			between.Filter(func(_ string, reply []byte) ([]byte, error) {
				m := new(dns.Msg)
				if err := m.Unpack(reply); err != nil {
					return nil, err
				}
				forge(m)
				return m.Pack()
			})
			for what, seen := range map[string]observe.Observation{
				"serial":  o.Serial(t.Context(), observe.Peer{Addr: between.Addr}, "bank.example.", &s.Transfer),
				"content": o.Observe(t.Context(), observe.Peer{Addr: between.Addr}, observe.Zone{Name: "bank.example."}, &s.Transfer, time.Now()),
			} {
				if seen.Err == nil || !seen.Unverified || seen.Mirror != nil {
					t.Errorf("%s: the forged answer counts: %+v", what, seen)
				}
			}
		})
	}
}

// A server says neither its host's name nor which of several it is, and answers a flood of one question with truncated messages, so
// that who forges addresses gains nothing and who asks honestly repeats over TCP.
func TestAttack16Reflection(t *testing.T) {
	kube.Disruptive(t, nil)
	n := newTenant(t, "flood")
	n.apply(bind9Cluster("dns") + dnsZone("main", "flood.example", "clusterRef: dns") + aRecord("www", "main", "www", "192.0.2.1"))
	waitServed(t, n.client, n.namespace, "www.flood.example", dns.TypeA, "192.0.2.1")
	all, err := kube.Servers(t.Context(), n.client, n.namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range all {
		for _, name := range []string{"hostname.bind.", "id.server."} {
			m := new(dns.Msg)
			m.SetQuestion(name, dns.TypeTXT)
			m.Question[0].Qclass = dns.ClassCHAOS
			reply, _, err := new(dns.Client).ExchangeContext(t.Context(), m, server)
			if err != nil || len(reply.Answer) > 0 {
				t.Errorf("%s: %v, %v", name, reply, err)
			}
		}
		if !isTruncatedInFlood(t, server, "www.flood.example.") {
			t.Error("a flood of one question is answered in full")
		}
	}
}

// isTruncatedInFlood asks a server one question by the thousands, for up to a minute, and reports whether an answer is truncated.
func isTruncatedInFlood(t *testing.T, server, name string) bool {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "udp", server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	m := new(dns.Msg)
	m.SetQuestion(name, dns.TypeA)
	question, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, dns.MaxMsgSize)
	for began := time.Now(); time.Since(began) < time.Minute; {
		for range 5000 {
			_, _ = conn.Write(question)
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		for {
			size, err := conn.Read(answer)
			if err != nil {
				break
			}
			var reply dns.Msg
			if reply.Unpack(answer[:size]) == nil && reply.Truncated {
				return true
			}
		}
	}
	return false
}

package named

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

const startTimeout = 20 * time.Second

// reserved holds the sockets that keep a port ours until its server starts.
var (
	reservedMu sync.Mutex
	reserved   = map[netip.AddrPort]func(){}
)

// Reserve finds a loopback port that nobody uses, over UDP and TCP, and keeps it until a server is started on it. named
// shares a busy port without complaint, so that a test could talk to a stranger.
func Reserve(t testing.TB) netip.AddrPort {
	t.Helper()
	for range 200 {
		// Below the ports that the kernel gives to clients.
		addr := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(20000+rand.IntN(12000))) //nolint:gosec // a port, no secret
		tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
		if err != nil {
			continue
		}
		udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
		if err != nil {
			_ = tcp.Close()
			continue
		}
		free := sync.OnceFunc(func() {
			_ = tcp.Close()
			_ = udp.Close()
		})
		reservedMu.Lock()
		reserved[addr] = free
		reservedMu.Unlock()
		t.Cleanup(free)
		return addr
	}
	t.Fatal("no free port on 127.0.0.1 between 20000 and 32000")
	return netip.AddrPort{}
}

// release frees reserved ports, and checks that others are free.
func release(t testing.TB, addrs ...netip.AddrPort) {
	t.Helper()
	for _, addr := range addrs {
		reservedMu.Lock()
		free := reserved[addr]
		delete(reserved, addr)
		reservedMu.Unlock()
		if free != nil {
			free()
			continue
		}
		udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
		if err != nil {
			t.Fatalf("port in use: %v", err)
		}
		_ = udp.Close()
	}
}

// waitReady waits until the server that answers is ours and serves every zone.
func (s *Server) waitReady() error {
	deadline := time.Now().Add(startTimeout)
	if err := s.waitFor(deadline, "it does not answer", s.isOurs); err != nil {
		return err
	}
	if s.options.NoWait {
		return nil
	}
	for _, z := range s.options.Zones {
		err := s.waitFor(deadline, "it does not serve "+z.Name, func() bool { return s.serves(z.Name) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) waitFor(deadline time.Time, failure string, ok func() bool) error {
	for !ok() {
		select {
		case <-s.exited:
			return errors.New("it has ended")
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s after %s", failure, startTimeout)
		}
	}
	return nil
}

func (s *Server) isOurs() bool {
	m := &dns.Msg{MsgHdr: dns.MsgHdr{Id: dns.Id()}}
	m.Question = []dns.Question{{Name: "id.server.", Qtype: dns.TypeTXT, Qclass: dns.ClassCHAOS}}
	reply, err := s.ask(m)
	if err != nil || len(reply.Answer) == 0 {
		return false
	}
	txt, ok := reply.Answer[0].(*dns.TXT)
	return ok && len(txt.Txt) == 1 && txt.Txt[0] == s.token
}

func (s *Server) serves(zone string) bool {
	m := new(dns.Msg)
	m.SetQuestion(zone, dns.TypeSOA)
	reply, err := s.ask(m)
	return err == nil && reply.Rcode == dns.RcodeSuccess && reply.Authoritative && len(reply.Answer) == 1
}

func (s *Server) ask(m *dns.Msg) (*dns.Msg, error) {
	c := dns.Client{Net: "tcp", Timeout: time.Second} // over UDP named limits the rate of such questions
	reply, _, err := c.Exchange(m, s.Addr.String())
	return reply, err
}

package named

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
)

// ErrHangUp makes a Proxy close the connection that a reply belongs to.
var ErrHangUp = errors.New("hang up")

// Filter receives a reply on its way from server to client over "udp" or "tcp" and returns what is passed on: nil for
// nothing. An error closes the connection.
type Filter func(network string, reply []byte) ([]byte, error)

// Proxy relays between clients and a server, over UDP and TCP, and may drop, change or delay replies as networks and
// attackers do.
type Proxy struct {
	Addr netip.AddrPort

	server netip.AddrPort
	filter atomic.Pointer[Filter]
	tcp    *net.TCPListener
}

// StartProxy starts a proxy that passes everything on.
func StartProxy(t testing.TB, server netip.AddrPort) *Proxy {
	t.Helper()
	addr := Reserve(t)
	Release(t, addr)
	return StartProxyAt(t, addr, server)
}

// StartProxyAt is StartProxy at an address, which can be any of 127.0.0.0/8: named itself listens only where an interface is.
func StartProxyAt(t testing.TB, addr, server netip.AddrPort) *Proxy {
	t.Helper()
	p := &Proxy{Addr: addr, server: server}
	p.Filter(func(_ string, reply []byte) ([]byte, error) { return reply, nil })
	p.AcceptTCP(t)
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(p.Addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.tcp.Close()
		_ = udp.Close()
	})
	go p.datagrams(udp)
	return p
}

// RefuseTCP makes the proxy refuse new connections.
func (p *Proxy) RefuseTCP() { _ = p.tcp.Close() }

// AcceptTCP makes the proxy accept connections again.
func (p *Proxy) AcceptTCP(t testing.TB) {
	t.Helper()
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(p.Addr))
	if err != nil {
		t.Fatal(err)
	}
	p.tcp = tcp
	go p.streams(tcp)
}

// Filter replaces the filter; replies on their way may still meet the old one.
func (p *Proxy) Filter(f Filter) { p.filter.Store(&f) }

func (p *Proxy) pass(network string, reply []byte) ([]byte, error) {
	return (*p.filter.Load())(network, reply)
}

func (p *Proxy) datagrams(udp *net.UDPConn) {
	buf := make([]byte, 65535)
	for {
		n, client, err := udp.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		upstream, err := net.Dial("udp", p.server.String())
		if err != nil {
			continue
		}
		_, _ = upstream.Write(buf[:n])
		go func() {
			defer upstream.Close()
			reply := make([]byte, 65535)
			n, err := upstream.Read(reply)
			if err != nil {
				return
			}
			if out, err := p.pass("udp", reply[:n]); err == nil && out != nil {
				_, _ = udp.WriteToUDPAddrPort(out, client)
			}
		}()
	}
}

func (p *Proxy) streams(tcp *net.TCPListener) {
	for {
		client, err := tcp.Accept()
		if err != nil {
			return
		}
		go p.stream(client)
	}
}

func (p *Proxy) stream(client net.Conn) {
	defer client.Close()
	upstream, err := net.Dial("tcp", p.server.String())
	if err != nil {
		return
	}
	defer upstream.Close()
	go func() {
		_, _ = io.Copy(upstream, client)
		_ = upstream.Close()
	}()
	for {
		var size [2]byte
		if _, err := io.ReadFull(upstream, size[:]); err != nil {
			return
		}
		reply := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(upstream, reply); err != nil {
			return
		}
		out, err := p.pass("tcp", reply)
		if err != nil {
			return
		}
		if out == nil {
			continue
		}
		framed := binary.BigEndian.AppendUint16(nil, uint16(len(out)))
		if _, err := client.Write(append(framed, out...)); err != nil {
			return
		}
	}
}

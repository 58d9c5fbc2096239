package share

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

// fakeConn is a connection from an address.
type fakeConn struct {
	net.Conn
	from   string
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.from))
}
func (c *fakeConn) Close() error { c.closed = true; return nil }

// TestConnectionsOfManyAddresses: addresses with many connections pay for new ones, and those with few do not.
func TestConnectionsOfManyAddresses(t *testing.T) {
	const most = 256
	s := NewConnections(most)
	honest := &fakeConn{from: "192.0.2.1:1"}
	s.Add(honest)
	greedy := make([]*fakeConn, 4*most)
	for i := range greedy {
		greedy[i] = &fakeConn{from: netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(i % 50)}), 3).String()}
		s.Add(greedy[i])
	}
	if honest.closed {
		t.Error("an address with one connection pays for those with many")
	}
	if len(s.conns) != most {
		t.Errorf("%d connections", len(s.conns))
	}
	for i, conn := range greedy {
		if newest := i >= len(greedy)-most/2; newest && conn.closed {
			t.Errorf("connection %d went before older ones", i)
		}
	}
	s.Remove(honest)
	if len(s.conns) != most-1 || honest.closed {
		t.Error("a connection that is removed is not let go")
	}
}

// Whoever opens connections without end loses the oldest of them, and what is closed makes room.
func TestListenerKeepsFewConnections(t *testing.T) {
	bare, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer bare.Close()
	l := NewListener(bare, 3)
	open := func() (client, server net.Conn) {
		t.Helper()
		client, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		if server, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
		return client, server
	}
	isClosed := func(server net.Conn) bool {
		_, err := server.Write([]byte("x"))
		return errors.Is(err, net.ErrClosed)
	}
	_, oldest := open()
	_, second := open()
	_, third := open()
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	open()
	if isClosed(oldest) {
		t.Error("a connection is closed although there is room")
	}
	open()
	if !isClosed(oldest) || isClosed(third) {
		t.Error("of too many connections the oldest stays, or another goes")
	}
}

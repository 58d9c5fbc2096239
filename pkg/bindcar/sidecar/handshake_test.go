package sidecar

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/test/mtls"
)

// connect opens a connection to a server and sends it something, without a handshake.
func connect(t *testing.T, at netip.AddrPort, junk string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Write([]byte(junk)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// isClosed reports whether the server closes a connection before the deadline.
func isClosed(conn net.Conn, deadline time.Duration) bool {
	if err := conn.SetReadDeadline(time.Now().Add(deadline)); err != nil {
		return true
	}
	for {
		if _, err := conn.Read(make([]byte, 100)); err != nil {
			return !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
}

// TestStrangersMakeRoom: connections that never authenticate go when there are too many, oldest first, and the controller gets
// in beside as many as there may be.
func TestStrangersMakeRoom(t *testing.T) {
	authority := mtls.NewAuthority(t)
	web := serve(t, authority, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	defer web.Close()
	at := serverAt(web.URL)
	// The first byte of a handshake, whose rest never comes, keeps the server waiting.
	var conns []net.Conn
	for range maxStrangersPerAddress + 20 {
		conns = append(conns, connect(t, at.Addr, "\x16"))
	}
	for i, conn := range conns[:20] {
		if !isClosed(conn, time.Minute) {
			t.Fatalf("connection %d still has its place", i)
		}
	}
	if _, err := mtls.Client(t, authority, bindcar.ControllerIdentity).Zones(testContext(t), at); err != nil {
		t.Errorf("strangers keep the controller out: %v", err)
	}
}

// TestStrangersHaveLittleTime: who does not authenticate is disconnected, whatever it sends.
func TestStrangersHaveLittleTime(t *testing.T) {
	web := serve(t, mtls.NewAuthority(t), http.NotFoundHandler())
	t.Cleanup(web.Close)
	for name, junk := range map[string]string{
		"nothing": "", "a request in clear text": "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "half a handshake": "\x16\x03\x01\x02\x00\x01",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if conn := connect(t, serverAt(web.URL).Addr, junk); !isClosed(conn, time.Minute) {
				t.Error("it keeps its connection")
			}
		})
	}
}

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

// TestStrangersOfManyAddresses: an address with too many connections costs itself places, and nobody else before all are taken.
func TestStrangersOfManyAddresses(t *testing.T) {
	var s strangers
	honest := &fakeConn{from: "192.0.2.1:1"}
	s.add(honest)
	greedy := make([]*fakeConn, 3*maxStrangersPerAddress)
	for i := range greedy {
		greedy[i] = &fakeConn{from: "[::ffff:198.51.100.1]:2"}
		s.add(greedy[i])
	}
	for i, conn := range greedy {
		if want := i < 2*maxStrangersPerAddress; conn.closed != want {
			t.Fatalf("connection %d of one address is closed: %v", i, conn.closed)
		}
	}
	if honest.closed {
		t.Error("another address paid for it")
	}
	s.remove(honest)
	for i := range maxStrangers {
		s.add(&fakeConn{from: netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}), 3).String()})
	}
	if len(s.conns) != maxStrangers || !greedy[len(greedy)-1].closed {
		t.Errorf("%d connections, and the oldest is open: %v", len(s.conns), !greedy[len(greedy)-1].closed)
	}
}

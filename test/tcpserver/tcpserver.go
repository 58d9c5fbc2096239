// Package tcpserver runs servers that tests make up, hostile ones above all.
package tcpserver

import (
	"net"
	"net/netip"
	"testing"
)

// Start has serve handle every connection to a port on loopback, on a goroutine of its own, and closes the connection after it.
// The server listens until the test ends.
func Start(t testing.TB, serve func(net.Conn)) netip.AddrPort {
	t.Helper()
	return StartAt(t, netip.MustParseAddr("127.0.0.1"), serve)
}

// StartAt is Start for an address of this machine.
func StartAt(t testing.TB, host netip.Addr, serve func(net.Conn)) netip.AddrPort {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", netip.AddrPortFrom(host, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				serve(conn)
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).AddrPort()
}

package sidecar

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
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
	for range maxStrangers + 20 {
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

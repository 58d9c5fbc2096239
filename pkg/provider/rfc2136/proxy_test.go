package rfc2136_test

import (
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
)

// What a proxy does with replies.
const (
	pass         = iota
	dropReply    // read the reply, then close the connection
	swallowReply // read the reply and say nothing
)

// proxy passes requests to a server over TCP and may keep the replies.
type proxy struct {
	addr netip.AddrPort
	mode atomic.Int32
}

func startProxy(t *testing.T, server netip.AddrPort) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &proxy{addr: netip.MustParseAddrPort(l.Addr().String())}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(client, server)
		}
	}()
	return p
}

func (p *proxy) serve(client net.Conn, server netip.AddrPort) {
	defer client.Close()
	upstream, err := net.Dial("tcp", server.String())
	if err != nil {
		return
	}
	defer upstream.Close()
	go func() {
		_, _ = io.Copy(upstream, client)
		_ = upstream.Close()
	}()
	buf := make([]byte, 65537)
	for {
		n, err := upstream.Read(buf)
		if err != nil {
			return
		}
		switch p.mode.Load() {
		case dropReply:
			return
		case swallowReply:
			continue
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

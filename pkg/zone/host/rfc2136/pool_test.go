package rfc2136

import (
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/tcpserver"
)

// Connections that nobody uses are kept while they are few among those that their owner may have: the others are not kept from it.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	server := tcpserver.Start(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	gate := outbound.NewGate(func(netip.Addr) bool { return true }, outbound.Limits{})
	p := newConnPool(2)
	defer p.closeIdle()
	ctx := outbound.WithAccount(t.Context(), gate.Account("team", "provider", 3))
	for _, name := range []string{"a.", "b.", "c.", "d."} { // One that waited for another to be closed would wait for as long as these are kept.
		_, release, err := p.acquire(ctx, server, &wire.Key{Name: name, Algorithm: "hmac-sha256.", Secret: "c2VjcmV0"})
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	if len(p.peers) != 1 {
		t.Errorf("%d connections are kept, want one of the three that there may be", len(p.peers))
	}
}

package named

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// SendUpdate sends an UPDATE (RFC 2136) with the server's update key, and fails the test unless the server takes it.
func (s *Server) SendUpdate(t testing.TB, m *dns.Msg) {
	t.Helper()
	conn, err := wire.Dial(t.Context(), s.Addr, &s.Update)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if reply, err := conn.Exchange(t.Context(), m); err != nil || reply.Rcode != dns.RcodeSuccess {
		t.Fatal(reply, err)
	}
}

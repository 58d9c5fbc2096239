package observe

import (
	"context"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// AskAsClient asks an address for a zone's SOA as clients ask: without a key, over UDP or over TCP alone. Nothing is cached.
func AskAsClient(ctx context.Context, addr netip.AddrPort, zone string, tcp bool, timeout time.Duration) Observation {
	options := []wire.Option{wire.WithTimeout(timeout)}
	if tcp {
		options = append(options, wire.WithTCP())
	}
	at := time.Now()
	reply, err := wire.Query(ctx, addr, zone, dns.TypeSOA, options...)
	return observationFromReply(addr, at, zone, reply, err)
}

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
	return askAsClient(ctx, addr, zone, clientOptions(tcp, timeout))
}

// AskWho is AskAsClient, and asks as well what the server calls itself.
func AskWho(ctx context.Context, addr netip.AddrPort, zone string, tcp bool, timeout time.Duration) Observation {
	options := clientOptions(tcp, timeout)
	o := askAsClient(ctx, addr, zone, append(options, wire.WithNSID()))
	if o.Rcode != NoReply && o.ServerID == "" {
		o.ServerID, _ = wire.ServerID(ctx, addr, options...) // Whoever says nothing stays nameless.
	}
	return o
}

func clientOptions(tcp bool, timeout time.Duration) []wire.Option {
	options := []wire.Option{wire.WithTimeout(timeout)}
	if tcp {
		options = append(options, wire.WithTCP())
	}
	return options
}

func askAsClient(ctx context.Context, addr netip.AddrPort, zone string, options []wire.Option) Observation {
	at := time.Now()
	reply, err := wire.Query(ctx, addr, zone, dns.TypeSOA, options...)
	return observationFromReply(addr, at, zone, reply, err)
}

package rfc2136

import (
	"context"
	"fmt"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Probe finds out whether a server refuses an update whose prerequisite does not hold (RFC 2136 section 3.2): without that, no update is
// a compare-and-swap. It changes nothing whatever the server does: its messages update nothing. Each has a prerequisite such as Apply
// sends, and none can hold: that the zone's SOA is another than soa, and, where others write as well, that it has none. A *wire.Error
// says why that cannot be known, for example that the server refuses updates.
func Probe(ctx context.Context, t Target, soa rrset.SOA) (compares bool, err error) {
	conn, err := wire.Dial(ctx, t.Server, t.Key)
	if err != nil {
		return false, fmt.Errorf("probing updates: %w", err)
	}
	defer func() { _ = conn.Close() }()
	soa.Serial ^= 1 << 31 // No change leads there in one step (RFC 1982 section 3.1).
	another := rrset.ToSOA(t.Zone, soa)
	another.Hdr.Ttl = 0
	prerequisites, refusals := []dns.RR{another}, []int{dns.RcodeNXRrset}
	if t.Shared {
		prerequisites = append(prerequisites, requireNothing(rrset.Key{Name: t.Zone, Type: dns.TypeSOA})...)
		refusals = append(refusals, dns.RcodeYXRrset)
	}
	for i, prerequisite := range prerequisites {
		m := new(dns.Msg)
		m.SetUpdate(t.Zone)
		m.Answer = []dns.RR{prerequisite}
		reply, err := conn.Exchange(ctx, m)
		switch {
		case err != nil:
			return false, fmt.Errorf("probing updates: %w", err)
		case reply.Rcode == dns.RcodeSuccess:
			return false, nil
		case reply.Rcode != refusals[i]:
			return false, &wire.Error{Op: "update", Server: t.Server.String(), Zone: t.Zone, Rcode: reply.Rcode}
		}
	}
	return true, nil
}

package rig

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

func (r *Rig) querySOA(ctx context.Context, server netip.AddrPort, apex string, opts ...wire.Option) (rrset.SOA, error) {
	reply, err := wire.Query(ctx, server, apex, dns.TypeSOA, opts...)
	if err != nil {
		return rrset.SOA{}, err
	}
	if len(reply.Msg.Answer) == 1 {
		if soa, ok := reply.Msg.Answer[0].(*dns.SOA); ok {
			return rrset.FromSOA(soa), nil
		}
	}
	return rrset.SOA{}, fmt.Errorf("%s answers %s for %s", server, dns.RcodeToString[reply.Msg.Rcode], apex)
}

// CheckAnswer asks a server once for a name and returns nil when the answer is exactly this address.
func CheckAnswer(ctx context.Context, server netip.AddrPort, name, address string) error {
	reply, err := wire.Query(ctx, server, name, dns.TypeA)
	if err != nil {
		return err
	}
	if len(reply.Msg.Answer) == 1 {
		if a, ok := reply.Msg.Answer[0].(*dns.A); ok && a.A.String() == address {
			return nil
		}
	}
	return fmt.Errorf("%s answers %s %v for %s, want %s", server, dns.RcodeToString[reply.Msg.Rcode], reply.Msg.Answer, name, address)
}

// WaitAnswered asks all servers, every millisecond, until the last of them answers with the address, and returns how long that
// took.
func (r *Rig) WaitAnswered(ctx context.Context, name, address string) (time.Duration, error) {
	return WaitAnsweredBy(ctx, r.Servers, name, address)
}

// WaitAnsweredBy is WaitAnswered for some servers.
func WaitAnsweredBy(ctx context.Context, servers []netip.AddrPort, name, address string) (time.Duration, error) {
	began := time.Now()
	group := &errgroup.Group{}
	for _, server := range servers {
		group.Go(func() error {
			return PollUntil(ctx, time.Minute, time.Millisecond, func() error { return CheckAnswer(ctx, server, name, address) })
		})
	}
	err := group.Wait()
	return time.Since(began), err
}

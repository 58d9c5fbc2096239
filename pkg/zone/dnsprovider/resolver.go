package dnsprovider

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Resolver finds the servers that a provider has by host name.
type Resolver struct {
	Names outbound.Resolver
	// Gate decides which addresses may be used.
	Gate *outbound.Gate
}

// Resolve looks up the servers that a provider has by host name. was is what was known of all of its servers: a host name that cannot be
// looked up keeps what it had.
func (r Resolver) Resolve(ctx context.Context, p *v1beta1.DNSProvider, was []v1beta1.ProviderServerStatus) (found []v1beta1.ProviderServerStatus) {
	ctx, cancel := context.WithTimeout(ctx, wire.DefaultTimeout)
	defer cancel()
	primaries, secondaries := serving.DeclaredServers(p)
	for _, s := range slices.Concat(primaries, secondaries) {
		if _, err := netip.ParseAddr(s.Address); err == nil {
			continue
		}
		known := v1beta1.ProviderServerStatus{Address: serving.ServerAddress(s)}
		if n := slices.IndexFunc(was, func(w v1beta1.ProviderServerStatus) bool { return w.Address == known.Address }); n >= 0 {
			known.IP = was[n].IP
		}
		known.IP, known.Message = r.addressOf(ctx, s.Address, known.IP)
		found = append(found, known)
	}
	return found
}

// addressOf looks up a host name. The address that it had stays while it is one of those that it has.
func (r Resolver) addressOf(ctx context.Context, host, was string) (ip, problem string) {
	names := r.Names
	if names.Permit == nil {
		names.Permit = r.Gate.Permits
	}
	usable, err := names.Resolve(ctx, host)
	switch {
	case err != nil:
		return was, err.Error()
	case len(usable) == 0:
		return "", fmt.Sprintf("host name %s has no address that may be used: %s", host, r.Gate.Forbidden())
	case slices.ContainsFunc(usable, func(a netip.Addr) bool { return a.String() == was }):
		return was, ""
	}
	return usable[0].String(), ""
}

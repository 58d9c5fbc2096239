package dnsprovider

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Resolver finds the servers that a provider has by host name.
type Resolver struct {
	// Lookup returns the addresses of a host name, as net.Resolver.LookupNetIP does.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	// Permit reports whether an address may be a server's.
	Permit func(netip.Addr) bool
}

// NewResolver returns a Resolver that finds servers elsewhere only: providers name any host.
func NewResolver() Resolver {
	return Resolver{Lookup: net.DefaultResolver.LookupNetIP, Permit: isUsable}
}

// Resolve returns the servers that a provider has by host name, with the addresses that they have now. was is what was known of all of
// its servers: a host name that cannot be looked up keeps what it had.
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
	found, err := r.Lookup(ctx, "ip", host)
	if err != nil {
		return was, fmt.Sprintf("host name %s cannot be looked up: %v", host, err)
	}
	usable := slices.DeleteFunc(found, func(a netip.Addr) bool { return !r.Permit(a.Unmap()) })
	if len(usable) == 0 {
		return "", fmt.Sprintf("host name %s has no address that may be used: loopback, link-local, multicast and unspecified ones may not", host)
	}
	for _, a := range usable {
		if a.Unmap().String() == was {
			return was, ""
		}
	}
	slices.SortFunc(usable, netip.Addr.Compare)
	return usable[0].Unmap().String(), ""
}

// isUsable reports whether an address can be that of a server elsewhere. The CRD refuses the others where they are written as
// addresses.
func isUsable(a netip.Addr) bool {
	return a.IsGlobalUnicast() // No loopback, link-local, multicast or unspecified one; private ones are.
}

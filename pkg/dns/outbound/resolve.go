package outbound

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// LookupFunc returns the addresses of a host name, as net.Resolver.LookupNetIP does.
type LookupFunc func(ctx context.Context, network, host string) ([]netip.Addr, error)

// Resolver resolves the host names in objects of tenants. The zero value uses the system's resolver, and Permits.
type Resolver struct {
	Lookup LookupFunc
	Permit func(netip.Addr) bool
}

// Resolve looks up the permitted addresses of a host name, sorted; there may be none. The error means that it cannot be looked up.
func (r Resolver) Resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if r.Lookup == nil {
		r.Lookup = net.DefaultResolver.LookupNetIP
	}
	if r.Permit == nil {
		r.Permit = Permits
	}
	found, err := r.Lookup(ctx, "ip", AbsoluteName(host))
	if err != nil {
		return nil, fmt.Errorf("host name %s cannot be looked up: %w", host, err)
	}
	var permitted []netip.Addr
	for _, a := range found {
		if a = a.Unmap(); r.Permit(a) {
			permitted = append(permitted, a)
		}
	}
	slices.SortFunc(permitted, netip.Addr.Compare)
	return slices.Compact(permitted), nil
}

// LookupNS asks the system's resolver for the name servers of a zone, as net.Resolver.LookupNS does. The name is absolute. Their host names
// are somebody else's words: a Resolver says which of their addresses may be used.
func LookupNS(ctx context.Context, zone string) ([]*net.NS, error) {
	return net.DefaultResolver.LookupNS(ctx, AbsoluteName(zone))
}

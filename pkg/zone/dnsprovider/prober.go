package dnsprovider

import (
	"context"
	"errors"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
)

// prober asks servers of one provider, about one of its zones.
type prober struct {
	update, transfer *wire.Key
	// zone is a canonical name; the root when the provider has no zone: any signed answer shows that a key is known.
	zone string
	// byAddress is true of secondaries without a key: they are asked for a serial, and nothing is read from them.
	byAddress bool
}

// ask finds out the state of a server. Without keys it is only asked for its version.
func (p prober) ask(ctx context.Context, s observe.Server, keys bool) status.ProviderServerFacts {
	_, address, _ := strings.Cut(s.Pod, "/")
	f := status.ProviderServerFacts{Address: address, Role: string(s.Role), Problem: s.Message}
	if !s.Addr.IsValid() {
		return f
	}
	f.IP = s.Addr.Addr().String()
	var err error
	if f.Software, err = wire.Version(ctx, s.Addr); err != nil && !keys {
		f.Problem = err.Error()
		return f
	}
	f.Reachable = err == nil
	if !keys {
		return f
	}
	soa, ok := p.tryKey(ctx, s, &f, p.transfer)
	if s.Role == observe.Primary && ok && *p.update != *p.transfer {
		_, ok = p.tryKey(ctx, s, &f, p.update)
	}
	if f.Authenticated = ok; !ok || soa == nil {
		if ok && p.byAddress && p.zone != "." {
			f.Problem = "it does not serve " + p.zone + " as a secondary: make it one there"
		}
		return f
	}
	if f.HasZone = true; p.byAddress {
		return f
	}
	if s.Role == observe.Primary {
		p.tryUpdate(ctx, s, &f, *soa)
	}
	if s.ReadBy == v1beta1.ReadByQuery {
		f.ByQuery = true
		return f
	}
	limits := wire.WithLimits(wire.Limits{Bytes: maxTriedTransfer})
	if _, err := wire.Transfer(ctx, s.Addr, p.zone, soa, p.transfer, limits); err != nil && !errors.Is(err, wire.ErrTooLarge) {
		f.TransferProblem = err.Error()
	}
	return f
}

// maxTriedTransfer is how much of a transfer is read, in bytes, to find out whether a server lets us have it. It is charged to nobody.
const maxTriedTransfer = 256 << 10

// tryUpdate finds out whether a server takes updates as compare-and-swap, and changes nothing.
func (p prober) tryUpdate(ctx context.Context, s observe.Server, f *status.ProviderServerFacts, soa rrset.SOA) {
	compares, err := rfc2136.Probe(ctx, rfc2136.Target{Server: s.Addr, Zone: p.zone, Key: p.update, Shared: s.Shared}, soa)
	var e *wire.Error
	switch {
	case err == nil:
		f.Compares = &compares
	case errors.As(err, &e) && e.Rcode != dns.RcodeSuccess:
		f.UpdateProblem = e.Error()
	default:
		f.Reachable, f.Problem = false, err.Error()
	}
}

// tryKey asks a server for an SOA with a key, and reports whether it knows the key. The SOA is nil if it does not serve the zone.
func (p prober) tryKey(ctx context.Context, s observe.Server, f *status.ProviderServerFacts, key *wire.Key) (soa *rrset.SOA, ok bool) {
	reply, err := wire.Query(ctx, s.Addr, p.zone, dns.TypeSOA, wire.WithKey(key))
	var e *wire.Error
	switch {
	case err == nil:
		f.Reachable = true
	case p.zone == "." && errors.As(err, &e) && e.Rcode == dns.RcodeRefused && e.TSIGError == 0 && errors.Is(err, wire.ErrUnsigned):
		f.Reachable, f.Unproven, f.Problem = true, true, e.Detail() // Knot signs no answer about a zone that it does not have.
		return nil, false
	case !p.byAddress && errors.As(err, &e) && (e.TSIGError != 0 || errors.Is(err, wire.ErrUnsigned) || errors.Is(err, wire.ErrSignature) || errors.Is(err, wire.ErrClock)):
		f.Reachable, f.Problem = true, "key "+key.Name+": "+e.Detail()+keyRemedy(e)
		return nil, false
	default:
		f.Reachable, f.Problem = f.Reachable && wire.IsLocal(err), err.Error()
		return nil, false
	}
	for _, rr := range reply.Msg.Answer {
		if found, is := rr.(*dns.SOA); is && reply.Msg.Authoritative && dns.CanonicalName(found.Hdr.Name) == p.zone {
			soa = new(rrset.FromSOA(found))
		}
	}
	return soa, true
}

// keyRemedy says what to do about a key that a server does not accept, as the end of a sentence.
func keyRemedy(e *wire.Error) string {
	const compare = "; compare name, algorithm and secret in the provider's Secret with the server's key"
	switch {
	case e.TSIGError == dns.RcodeBadTime || errors.Is(e, wire.ErrClock):
		return "; set the server's clock"
	case e.TSIGError == 0 && e.RefusesKey():
		return compare + ", and see that the server's clock is right"
	}
	return compare
}

package registry

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// typeDSYNC is the type of a record by which a zone says whom to notify about zones below it (RFC 9859 section 2), schemeNotify the only
// way that there is.
const (
	typeDSYNC    = 66
	schemeNotify = 1
)

// maxTargets is how many targets get a NOTIFY. Each is sent to one address, and repeated at most once.
const maxTargets = 2

// Notify tells whoever the zone above names that a zone has other CDS records, and reports whether somebody took note. It sends nothing if
// the zone above names nobody.
func (r *Registry) Notify(ctx context.Context, namespace, name string, d *Delegation) (targets int, noted bool) {
	ctx, cancel := context.WithTimeout(outbound.WithAccount(ctx, r.Gate.Account(namespace, "registries", maxConnections)), lookTimeout)
	defer cancel()
	for _, t := range d.targets(ctx, name) {
		found, err := r.Names.Resolve(ctx, t.host)
		if err != nil || len(found) == 0 {
			continue
		}
		targets++
		err = wire.NotifyCDS(ctx, netip.AddrPortFrom(found[0], t.port), name)
		noted = noted || err == nil
	}
	return targets, noted
}

// target is where to send a NOTIFY about CDS records.
type target struct {
	host string
	port uint16
}

// targets are those that the zone above names for a zone, or for all zones below it.
func (d *Delegation) targets(ctx context.Context, name string) []target {
	parent := dns.CanonicalName(d.Name)
	under := "_dsync." + strings.TrimPrefix(parent, ".")
	for _, owner := range []string{strings.TrimSuffix(name, parent) + under, under} {
		if found := d.targetsAt(ctx, owner); len(found) > 0 {
			return found
		}
	}
	return nil
}

// targetsAt are those of the first server that answers.
func (d *Delegation) targetsAt(ctx context.Context, owner string) (found []target) {
	if _, valid := dns.IsDomainName(owner); !valid {
		return nil
	}
	for _, at := range d.servers {
		reply := ask(ctx, at, owner, typeDSYNC)
		if reply == nil || !reply.Authoritative {
			continue
		}
		for _, rr := range reply.Answer {
			if t, ok := parseTarget(rr, owner); ok && !slices.Contains(found, t) && len(found) < maxTargets {
				found = append(found, t)
			}
		}
		return found
	}
	return nil
}

// parseTarget takes the target for CDS records from a DSYNC record: type, scheme, port and host name (RFC 9859 section 2.1).
func parseTarget(rr dns.RR, owner string) (t target, ok bool) {
	unknown, ok := rr.(*dns.RFC3597)
	if !ok || unknown.Hdr.Rrtype != typeDSYNC || dns.CanonicalName(unknown.Hdr.Name) != owner {
		return t, false
	}
	data, err := hex.DecodeString(unknown.Rdata)
	if err != nil || len(data) < 6 || binary.BigEndian.Uint16(data) != dns.TypeCDS || data[2] != schemeNotify {
		return t, false
	}
	host, end, err := dns.UnpackDomainName(data, 5)
	t = target{dns.CanonicalName(host), binary.BigEndian.Uint16(data[3:])}
	return t, err == nil && end == len(data) && t.port != 0 && t.host != "."
}

package reconcile

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/kinds"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/secondary"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/unreachable"
)

// A zone is served by hosts: servers of instances and of DNSProviders. What kind a host is of, package kinds alone knows: a pass calls the
// same methods of all.

// hasHosts reports whether the zone is to be served anywhere.
func (s scope) hasHosts() bool { return len(s.instances)+len(s.providers) > 0 }

// lacksProvider reports whether a DNSProvider that the zone names does not exist.
func (s scope) lacksProvider() bool {
	return slices.ContainsFunc(s.providers, func(p *v1beta1.DNSProvider) bool { return p.UID == "" })
}

// hostsOf returns the zone on each of its servers, in their order.
func (e edges) hostsOf(s scope, state *zoneState) []host.Host {
	zone := &host.Zone{
		Object: s.zone, Key: s.key(), Name: s.dnsName(), Paused: s.isPaused(), Signing: s.signing,
		Primaries: s.services(v1beta1.RolePrimary), OnLine: s.countOnLine(), Now: e.now, LookAgain: func() { e.zones.Enqueue(s.key()) },
	}
	zone.Notified, zone.TransferKeys = secondary.Guests(s.providers)
	zone.Notified = slices.Concat(s.services(v1beta1.RoleSecondary), zone.Notified)
	pass := &kinds.Pass{
		Zone: zone, Instances: s.instances, Providers: s.providers, DNS: dnsOfZone{e, s.asked()}, Keys: e.keys, Sidecar: e.sidecar,
		Updates: e.updates, Memory: &state.hosts,
	}
	hosts := make([]host.Host, len(s.servers))
	for i, server := range s.servers {
		hosts[i] = pass.Of(server)
	}
	return hosts
}

// restOf returns how long a zone may rest before somebody looks at one of its hosts; zero if all tell when it changes.
func restOf(hosts []host.Host) (rest time.Duration) {
	for _, h := range hosts {
		if r := h.Rest(); r > 0 && (rest == 0 || r < rest) {
			rest = r
		}
	}
	return rest
}

// dnsOfZone asks servers about one zone. It implements host.DNS.
type dnsOfZone struct {
	edges
	zone unreachable.Zone
}

// Serial asks for the SOA.
func (d dnsOfZone) Serial(ctx context.Context, at observe.Peer, key *wire.Key) observe.Observation {
	return d.dns.Serial(ctx, at, d.zone, key)
}

// Observe transfers the content, if it has changed.
func (d dnsOfZone) Observe(ctx context.Context, at observe.Peer, key *wire.Key) observe.Observation {
	return d.dns.Observe(ctx, at, d.zone, key)
}

// ObserveAnew transfers the whole content.
func (d dnsOfZone) ObserveAnew(ctx context.Context, at observe.Peer, key *wire.Key) observe.Observation {
	return d.dns.ObserveAnew(ctx, at, d.zone, key)
}

// ObserveNames asks for the SOA and for RRsets.
func (d dnsOfZone) ObserveNames(ctx context.Context, at observe.Peer, key *wire.Key, questions ...observe.Question) observe.Observation {
	return d.dns.ObserveNames(ctx, at, d.zone, key, questions...)
}

// ForgetZone has everything read anew.
func (d dnsOfZone) ForgetZone(at observe.Peer) { d.dns.ForgetZone(at, d.zone) }

// Notify sends a NOTIFY.
func (d dnsOfZone) Notify(ctx context.Context, at netip.AddrPort, serial uint32, key *wire.Key) error {
	return d.sendNotify(ctx, at, d.zone.Name, serial, key)
}

// A zone's primaries are kept on one content and one serial, as one line. One that is on another line (host.Host.Line) counts its own
// serial, keeps what nobody declares to itself, and has secondaries of its own.

// countOnLine counts the zone's primaries that are kept on one serial.
func (s scope) countOnLine() (n int) {
	for _, o := range s.servers {
		if o.Role == observe.Primary && host.LineOf(o) == "" {
			n++
		}
	}
	return n
}

// hasOtherLinesOnly reports whether the zone has primaries, and none on its own line.
func (s scope) hasOtherLinesOnly() bool {
	return s.countOnLine() == 0 && slices.ContainsFunc(s.servers, func(o observe.Server) bool { return o.Role == observe.Primary })
}

// isStranger reports whether data that nobody declares is not followed from a server.
func (s scope) isStranger(server observe.Server) bool {
	return slices.ContainsFunc(s.strangers, func(i *v1beta1.Bind9Instance) bool { return kinds.IsServerOf(i, server) })
}

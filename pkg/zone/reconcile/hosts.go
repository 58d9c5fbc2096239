package reconcile

import (
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/kinds"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/secondary"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/primary"
)

// A zone is served by hosts: servers of instances and of DNSProviders. What kind a host is of, package kinds alone knows: a pass calls the
// same methods of all.

// hasHosts reports whether the zone is to be served anywhere.
func (s scope) hasHosts() bool { return len(s.instances)+len(s.providers) > 0 }

// isPaused reports whether the zone is only watched.
func (s scope) isPaused() bool { return s.zone.Annotations[v1beta1.PausedAnnotation] == "true" }

// lacksProvider reports whether a DNSProvider that the zone names does not exist.
func (s scope) lacksProvider() bool {
	return slices.ContainsFunc(s.providers, func(p *v1beta1.DNSProvider) bool { return p.UID == "" })
}

// zoneOf returns a zone as its hosts see it.
func (e edges) zoneOf(s scope) *host.Zone {
	zone := &host.Zone{
		Object: s.zone, Key: s.key(), Name: s.dnsName(), Paused: s.isPaused(), Signing: s.signing,
		Primaries: s.services(v1beta1.RolePrimary), OnLine: s.countOnLine(), Now: e.now, LookAgain: func() { e.zones.Enqueue(s.key()) },
	}
	zone.Notified, zone.TransferKeys = secondary.Guests(s.providers)
	zone.Notified = slices.Concat(s.services(v1beta1.RoleSecondary), zone.Notified)
	return zone
}

// hostsOf returns the zone on each of its servers, in their order.
func (e edges) hostsOf(s scope, state *zoneState) []host.Host {
	pass := &kinds.Pass{
		Zone: e.zoneOf(s), Instances: s.instances, Providers: s.providers, DNS: e.dns, Notifier: e.sendNotify, Keys: e.keys,
		Sidecar: e.sidecar, Updates: e.updates, Memory: &state.hosts,
	}
	hosts := make([]host.Host, len(s.servers))
	for i, server := range s.servers {
		hosts[i] = pass.Of(server)
	}
	return hosts
}

// restOf returns how long a zone may wait until one of its hosts is checked again; zero if all notify of changes.
func restOf(hosts []host.Host) (rest time.Duration) {
	for _, h := range hosts {
		if r := h.At().Rest; r > 0 && (rest == 0 || r < rest) {
			rest = r
		}
	}
	return rest
}

// A zone's primaries are kept on one content and one serial, as one line. One that is on another line (host.Place) counts its own
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

// overPrimaries is the part of a pass that is about primaries.
func (p zonePass) overPrimaries() primary.Pass {
	return primary.Pass{
		Zone: p.zoneOf(p.scope), Hosts: p.hosts, Content: p.state.content, Serials: p.serials, Strangers: p.strangers,
		WasStuck:  func(key rrset.Key) bool { _, stuck := p.state.last.unprogrammed[key]; return stuck },
		NoteApart: p.state.verified.Clear,
	}
}

package reconcile

import (
	"context"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/unreachable"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// A server that holds an RRset does not always answer with it (RFC 1034 section 4.3.2): another zone that it serves may be
// nearer to the name, or a delegation or DNAME may stand above it in this zone.

// addHidden adds the declared RRsets that a primary holds and does not answer with.
func (p zonePass) addHidden(ctx context.Context, primaries []*primary, event *statuswriter.SyncCompleted) {
	if !event.Problem.Holds() {
		return
	}
	for _, name := range p.zonesCovering() {
		for _, q := range primaries {
			if !q.server.Addr.IsValid() {
				continue
			}
			// As a resolver asks, without a key: views may be chosen by it.
			if p.dns.Serial(ctx, q.server.Peer(), unreachable.Zone{Key: p.key(), Name: name}, nil).Authoritative {
				p.hide(rrset.Key{Name: name}, event, q.server.Pod)
			}
		}
	}
	for _, q := range primaries {
		for _, cut := range q.known.ForeignCuts() {
			p.hide(cut, event, q.server.Pod)
		}
	}
}

// hide marks what is hidden on a server by a delegation, a DNAME or, with the zero type, a zone.
func (p zonePass) hide(by rrset.Key, event *statuswriter.SyncCompleted, server string) {
	for key := range p.state.content.HiddenBy(by) {
		if _, stuck := event.Unprogrammed[key]; !stuck {
			event.Unprogrammed[key] = status.HiddenBy(server, key, by)
		}
	}
}

// zonesCovering returns the names of other zones at or below which this one declares data of its own.
func (p zonePass) zonesCovering() []string {
	var names []string
	for _, z := range p.zones.Members.ZonesBelow(p.dnsName()) {
		if name, err := source.ZoneName(z.Spec.ZoneName); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return p.state.content.Covering(slices.Compact(names))
}

package reconcile

import (
	"context"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/primary"
	"github.com/lockstep-dns/lockstep/pkg/zone/unreachable"
)

// A server that holds an RRset does not always answer with it (RFC 1034 section 4.3.2): another zone that it serves may be
// nearer to the name, or a delegation or DNAME may stand above it in this zone.

// hidden returns the declared RRsets that a primary holds and does not answer with.
func (p zonePass) hidden(ctx context.Context, primaries []primary.State) map[rrset.Key]status.Verdict {
	hidden := map[rrset.Key]status.Verdict{}
	// By a delegation, a DNAME or, with the zero type, a zone.
	hide := func(by rrset.Key, server string) {
		for key := range p.state.content.HiddenBy(by) {
			if _, known := hidden[key]; !known {
				hidden[key] = status.HiddenBy(server, key, by)
			}
		}
	}
	for _, name := range p.zonesCovering() {
		for _, q := range primaries {
			if !q.At.Addr.IsValid() {
				continue
			}
			// As a resolver asks, without a key: views may be chosen by it.
			if p.dns.Serial(ctx, q.At.Peer(), unreachable.Zone{Key: p.key(), Name: name}, nil).Authoritative {
				hide(rrset.Key{Name: name}, q.At.Pod)
			}
		}
	}
	for _, q := range primaries {
		for _, cut := range q.Known.ForeignCuts() {
			hide(cut, q.At.Pod)
		}
	}
	return hidden
}

// zonesCovering returns the names of other zones on the same servers at or below which this one declares data of its own. Anybody may have
// zones of these names elsewhere, in any number: servers are not asked about them.
func (p zonePass) zonesCovering() []string {
	below := p.zones.Members.ZonesBelow(p.dnsName())
	if p.fleet != nil {
		below = p.fleet.Sharing(p.zone, below)
	}
	var names []string
	for _, z := range below {
		if name, err := declaration.ZoneName(z.Spec.ZoneName); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return p.state.content.Covering(slices.Compact(names))
}

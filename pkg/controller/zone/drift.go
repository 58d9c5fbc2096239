package zone

import (
	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// noteDrift notes what a primary held as desired when it was last seen, and holds no more although nobody here changed
// it. before is what was known of the primary then.
func (p *pass) noteDrift(q *primary, before primaryState) {
	if !before.compared() || !rrset.SerialLess(before.soa.Serial, q.seen.Serial) {
		return // A server that came back with an older copy of the zone was not changed by anybody.
	}
	for key := range q.rest.Keys() {
		was, wasWanted := before.desired.Get(key)
		is, wanted := p.state.desired.Get(key)
		_, stuck := p.state.told.unprogrammed[key]
		if stuck || !wasWanted || !wanted || !was.Equal(is) {
			continue
		}
		if p.drifted == nil {
			p.drifted = map[rrset.Key]struct{}{}
		}
		p.drifted[key] = struct{}{}
	}
}

// countDrift counts what was put right of it.
func (p *pass) countDrift() {
	for key := range p.drifted {
		if !p.stuck(key) {
			p.event.Drift++
		}
	}
}

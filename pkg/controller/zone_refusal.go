package controller

import (
	"time"

	"github.com/lockstep-dns/lockstep/pkg/plan"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// refusal is an RRset that a server refused while it took others.
type refusal struct {
	err error
	// wanted is what was refused; it has no values where a deletion was.
	wanted rrset.RRset
	at     time.Time
}

// refuse remembers what a server refused of the changes, so that not every change of the zone tries it again.
func (p *primaryState) refuse(refused map[rrset.Key]error, changes plan.Changes, now time.Time) {
	wanted := map[rrset.Key]rrset.RRset{}
	for _, sets := range [][]rrset.RRset{changes.Create, changes.UpdateNew} {
		for _, set := range sets {
			wanted[set.Key] = set
		}
	}
	for key := range changes.Keys() {
		delete(p.refused, key)
	}
	for key, err := range refused {
		if p.refused == nil {
			p.refused = map[rrset.Key]refusal{}
		}
		p.refused[key] = refusal{err, wanted[key], now}
	}
}

// hopeful are the changes without those that were refused as they are a short while ago.
func (p *primaryState) hopeful(changes plan.Changes, now time.Time) plan.Changes {
	hopeless := func(key rrset.Key, wanted rrset.RRset) bool {
		r, ok := p.refused[key]
		return ok && now.Sub(r.at) < refusePause-firstPause && r.wanted.Equal(wanted)
	}
	if len(p.refused) == 0 {
		return changes
	}
	out := plan.Changes{Conflicts: changes.Conflicts, SOA: changes.SOA}
	for _, set := range changes.Create {
		if !hopeless(set.Key, set) {
			out.Create = append(out.Create, set)
		}
	}
	for i, set := range changes.UpdateNew {
		if !hopeless(set.Key, set) {
			out.UpdateOld, out.UpdateNew = append(out.UpdateOld, changes.UpdateOld[i]), append(out.UpdateNew, set)
		}
	}
	for _, set := range changes.Delete {
		if !hopeless(set.Key, rrset.RRset{}) {
			out.Delete = append(out.Delete, set)
		}
	}
	return out
}

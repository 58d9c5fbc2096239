package content

import (
	"maps"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

const (
	firstRefusalPause = time.Second
	// RefusalPause is the longest time until an RRset that a server refused is sent again.
	RefusalPause = time.Minute
	// minRetry is the least time until a pass that tries what was refused.
	minRetry = 250 * time.Millisecond
)

// refusal is an RRset that a server refused while it took others. That of the zero key is about the whole zone.
type refusal struct {
	err error
	// wanted is what was refused; it has no values where a deletion was.
	wanted rrset.RRset
	at     time.Time
	// pause is how long it is held back; it grows while the server goes on refusing the same.
	pause time.Duration
}

// Refused remembers what a server refused of the changes, so that not every change of the zone tries it again.
func (p *Primary) Refused(refused map[rrset.Key]error, changes plan.Changes, now time.Time) {
	if len(refused) == 0 && len(p.refused) == 0 {
		return
	}
	wanted := wantedBy(changes)
	for key := range changes.Keys() {
		if _, again := refused[key]; !again {
			delete(p.refused, key)
		}
	}
	for key, err := range refused {
		if p.refused == nil {
			p.refused = map[rrset.Key]refusal{}
		}
		pause := firstRefusalPause
		if last, again := p.refused[key]; again && last.wanted.Equal(wanted[key]) {
			pause = min(2*last.pause, RefusalPause)
		}
		p.refused[key] = refusal{err, wanted[key], now, pause}
	}
}

// wantedBy returns the RRsets that changes lead to, by key; without those that they delete.
func wantedBy(changes plan.Changes) map[rrset.Key]rrset.RRset {
	wanted := map[rrset.Key]rrset.RRset{}
	for _, sets := range [][]rrset.RRset{changes.Create, changes.UpdateNew} {
		for _, set := range sets {
			wanted[set.Key] = set
		}
	}
	return wanted
}

// RefusesAnew reports whether a server refused an RRset of the changes that it has not refused before as it is.
func (p *Primary) RefusesAnew(refused map[rrset.Key]error, changes plan.Changes) bool {
	wanted := wantedBy(changes)
	for key := range refused {
		if last, again := p.refused[key]; !again || !last.wanted.Equal(wanted[key]) {
			return true
		}
	}
	return false
}

// RefuseZone remembers that a server refused to have anything changed in the zone.
func (p *Primary) RefuseZone(err error, now time.Time) {
	p.Refused(map[rrset.Key]error{{}: err}, plan.Changes{}, now)
}

// Refusal returns the error with which the server refused an RRset; nil when it did not.
func (p *Primary) Refusal(key rrset.Key) error { return p.refused[key].err }

// ForgetRefusals forgets those of RRsets that lack nothing any more: what is declared there later is tried at once.
func (p *Primary) ForgetRefusals(stuck func(rrset.Key) bool) {
	maps.DeleteFunc(p.refused, func(key rrset.Key, _ refusal) bool { return !stuck(key) })
}

// NextRetry returns after how long what was refused is tried again; not ok when nothing was.
func (p *Primary) NextRetry(now time.Time) (after time.Duration, ok bool) {
	for _, r := range p.refused {
		if left := max(r.pause-now.Sub(r.at), minRetry); !ok || left < after {
			after, ok = left, true
		}
	}
	return after, ok
}

// isHeldBack reports whether an RRset was refused as it is, a short while ago, or is contested and not due yet. The last quarter of a pause does not count,
// so that a pass tries what is due soon together with what is due.
func (p *Primary) isHeldBack(key rrset.Key, wanted rrset.RRset, now time.Time) bool {
	r, ok := p.refused[key]
	return p.isPaused(key, wanted, now) || ok && now.Sub(r.at) < r.pause*3/4 && r.wanted.Equal(wanted)
}

// Sendable returns the changes without those that were refused as they are a short while ago, or that are contested and not due yet.
func (p *Primary) Sendable(changes plan.Changes, now time.Time) plan.Changes {
	if len(p.refused)+len(p.overwritten) == 0 {
		return changes
	}
	isHeldBack := func(key rrset.Key, wanted rrset.RRset) bool { return p.isHeldBack(key, wanted, now) }
	held := p.heldGroups(changes, isHeldBack)
	maySend := func(key rrset.Key, wanted rrset.RRset) bool { return !isHeldBack(key, wanted) && !held[p.group(key)] }
	out := plan.Changes{Conflicts: changes.Conflicts, SOA: changes.SOA}
	for _, set := range changes.Create {
		if maySend(set.Key, set) {
			out.Create = append(out.Create, set)
		}
	}
	for i, set := range changes.UpdateNew {
		if maySend(set.Key, set) {
			out.UpdateOld, out.UpdateNew = append(out.UpdateOld, changes.UpdateOld[i]), append(out.UpdateNew, set)
		}
	}
	for _, set := range changes.Delete {
		if maySend(set.Key, rrset.RRset{}) {
			out.Delete = append(out.Delete, set)
		}
	}
	return out
}

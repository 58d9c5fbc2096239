package reconcile

import (
	"errors"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/content"
)

// drift is an RRset that somebody else changed on a server, with the values added there.
type drift struct {
	key   rrset.Key
	added []string
}

// noteDrift takes note of what somebody else has changed on a primary, of which was known what is given, and that is not known to be stuck.
func (p zonePass) noteDrift(before content.Primary, q primary) primary {
	for key, added := range p.state.content.Drift(before, q.seen.Mirror, q.lacking) {
		if _, stuck := p.state.last.unprogrammed[key]; !stuck {
			q = p.noteOverwritten(q, key, added)
		}
	}
	return p.noteOverwrittenAgain(q)
}

// noteOverwrittenAgain takes note of what a primary lacks after it had it, or took it, since somebody else had overwritten it last.
func (p zonePass) noteOverwrittenAgain(q primary) primary {
	for key := range q.lacking.Keys() {
		if q.known.WasOurs(key) {
			has, _ := q.seen.Mirror.Get(key)
			q = p.noteOverwritten(q, key, p.state.content.AddedValues(has, nil))
		}
	}
	q.sendable = q.known.Sendable(q.lacking, p.now())
	return q
}

// noteOvertaking finds out whether somebody else changed the zone between the update and the look at it: then what the server
// lacks is not what it ignored. Where others write as well, that shows if it was before the update.
func (p zonePass) noteOvertaking(q primary) primary {
	isRaced := errors.Is(q.sent, host.ErrConflict)
	if q.isOnLine() {
		isRaced = q.seen.SOA != q.written
	}
	if q.overtaken = isRaced && q.sendable.HasChanges(); !q.overtaken {
		return q
	}
	for key := range q.sendable.Keys() {
		if q.at.Owner != "" {
			break // Another owner was faster, and has taken away nothing.
		}
		if _, declared := p.state.content.Desired().Get(key); declared {
			has, _ := q.seen.Mirror.Get(key)
			q = p.noteOverwritten(q, key, p.state.content.AddedValues(has, nil))
		}
	}
	q.sendable = q.known.Sendable(q.lacking, p.now())
	return q
}

// noteOverwritten takes note that somebody else has overwritten a declared RRset on a primary, and added values to it.
func (p zonePass) noteOverwritten(q primary, key rrset.Key, added []string) primary {
	if q.at.Owner != "" {
		added = nil // They stay.
	}
	q.drifted = append(q.drifted, drift{key, added})
	want, declared := p.state.content.Desired().Get(key)
	if !declared {
		return q
	}
	seen, _ := q.seen.Mirror.Get(key)
	atOnce := content.OwnCorrections
	if q.at.Provider != "" {
		atOnce = content.ForeignCorrections
	}
	q.known.NoteOverwritten(want, seen, atOnce, p.now())
	return q
}

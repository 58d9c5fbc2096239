package primary

import (
	"errors"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/content"
)

// Drift is an RRset that somebody else changed on a server, with the values added there.
type Drift struct {
	Key   rrset.Key
	Added []string
}

// noteDrift notes what somebody else has changed on a primary, of which was known what is given, and that was not stuck before.
func (p Pass) noteDrift(before content.Primary, q State) State {
	for key, added := range p.Content.Drift(before, q.Seen.Mirror, q.Lacking) {
		if !p.WasStuck(key) {
			q = p.noteOverwritten(q, key, added)
		}
	}
	return p.noteOverwrittenAgain(q)
}

// noteOverwrittenAgain notes what a primary lacks after it had it, or took it, since somebody else had overwritten it last.
func (p Pass) noteOverwrittenAgain(q State) State {
	for key := range q.Lacking.Keys() {
		if q.Known.WasOurs(key) {
			has, _ := q.Seen.Mirror.Get(key)
			q = p.noteOverwritten(q, key, p.Content.AddedValues(has, nil))
		}
	}
	q.sendable = q.Known.Sendable(q.Lacking, p.Zone.Now())
	return q
}

// noteOvertaking finds out whether somebody else changed the zone between the update and the look at it: then what the server
// lacks is not what it ignored. Where others write as well, that shows if it was before the update. After a lost reply it does not show: the
// update itself may be lost.
func (p Pass) noteOvertaking(q State) State {
	isRaced := errors.Is(q.sent, host.ErrConflict)
	if q.IsOnLine() {
		isRaced = q.Seen.SOA != q.written && !errors.Is(q.sent, host.ErrUnknown)
	}
	if q.Overtaken = isRaced && q.sendable.HasChanges(); !q.Overtaken {
		return q
	}
	for key := range q.sendable.Keys() {
		if q.At.Owner != "" {
			break // Another owner was faster, and has taken away nothing.
		}
		if _, declared := p.Content.Desired().Get(key); declared {
			has, _ := q.Seen.Mirror.Get(key)
			q = p.noteOverwritten(q, key, p.Content.AddedValues(has, nil))
		}
	}
	q.sendable = q.Known.Sendable(q.Lacking, p.Zone.Now())
	return q
}

// noteOverwritten notes that somebody else has overwritten a declared RRset on a primary, and added values to it.
func (p Pass) noteOverwritten(q State, key rrset.Key, added []string) State {
	if q.At.Owner != "" {
		added = nil // They stay.
	}
	q.Drifted = append(q.Drifted, Drift{key, added})
	want, declared := p.Content.Desired().Get(key)
	if !declared {
		return q
	}
	seen, _ := q.Seen.Mirror.Get(key)
	atOnce := content.OwnCorrections
	if q.At.Provider != "" {
		atOnce = content.ForeignCorrections
	}
	q.Known.NoteOverwritten(want, seen, atOnce, p.Zone.Now())
	return q
}

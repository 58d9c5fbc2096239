package content

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// An RRset that somebody else overwrites again and again is contested: it is corrected less and less often, each RRset by itself, so that who
// may write one name delays no correction of another.
const (
	// contestWindow is how long an overwritten RRset is remembered that nobody overwrites again.
	contestWindow = 10 * time.Minute
	// The pauses before further corrections double from the first to the longest.
	firstContestPause = 5 * time.Second
	maxContestPause   = 5 * time.Minute
	// lookInterval is how often a server is looked at for lookDuration after a correction: whoever overwrites it is noticed soon.
	lookInterval = 2 * time.Second
	lookDuration = 30 * time.Second
	// confirmDuration is how long a correction of a contested RRset has to stand until it is programmed.
	confirmDuration = 10 * time.Second
)

// How many corrections of an RRset are made at once: on servers of ours, and on those that others run and write to.
const (
	OwnCorrections     = 10
	ForeignCorrections = 3
)

// overwrite is an RRset that somebody else has overwritten on a server.
type overwrite struct {
	// wanted is what was declared, and seen what the server had instead.
	wanted, seen rrset.RRset
	// count is how often that was seen between first and last.
	count       int
	first, last time.Time
	// pause is how long after last it is corrected; zero while it is not contested.
	pause time.Duration
	// ours is true if it was sent, or seen as declared, after last; standing is since when it has been seen so, zero if it is not.
	ours     bool
	standing time.Time
}

// settledAfter is how long a correction has to stand until the fight has ended: the other side may pause, too.
func (o *overwrite) settledAfter() time.Duration { return 2*o.pause + lookDuration }

// Contest is what is known of a contested RRset.
type Contest struct {
	Key rrset.Key
	// Seen is what the server had last instead of what is Declared. It has it now unless Standing.
	Seen, Declared rrset.RRset
	Standing       bool
	// Count is how often it was overwritten since First.
	Count int
	First time.Time
	// Next is when it is corrected again, if it is not Standing.
	Next time.Time
}

// WasOurs reports whether a server had an RRset as declared after somebody else had overwritten it last.
func (p *Primary) WasOurs(key rrset.Key) bool {
	o := p.overwritten[key]
	return o != nil && o.ours
}

// NoteOverwritten notes that somebody else has overwritten an RRset on the server with what was seen. Until it was ours again, that
// counts once. So many times it is corrected at once.
func (p *Primary) NoteOverwritten(wanted, seen rrset.RRset, atOnce int, now time.Time) {
	o := p.overwritten[wanted.Key]
	switch {
	case o == nil:
		if o = (&overwrite{wanted: wanted, first: now}); p.overwritten == nil {
			p.overwritten = map[rrset.Key]*overwrite{}
		}
		p.overwritten[wanted.Key] = o
	case !o.ours:
		o.seen = seen
		return
	}
	o.seen, o.last, o.ours, o.standing = seen, now, false, time.Time{}
	if o.count++; o.count > atOnce {
		o.pause = min(max(2*o.pause, firstContestPause), maxContestPause)
	}
}

// NoteSent notes what the server took.
func (p *Primary) NoteSent(keys iter.Seq[rrset.Key], refused map[rrset.Key]error) {
	for key := range keys {
		if o := p.overwritten[key]; o != nil && refused[key] == nil {
			o.ours = true
		}
	}
}

// NoteStanding notes which RRsets are as declared. What is declared otherwise by now is contested no more.
func (z *Zone) NoteStanding(p *Primary, lacks plan.Changes, now time.Time) {
	if len(p.overwritten) == 0 {
		return
	}
	lacking := map[rrset.Key]bool{}
	for key := range lacks.Keys() {
		lacking[key] = true
	}
	maps.DeleteFunc(p.overwritten, func(key rrset.Key, o *overwrite) bool {
		switch want, _ := z.desired.Get(key); {
		case !want.Equal(o.wanted):
			return true
		case lacking[key]:
			o.standing = time.Time{}
		case o.standing.IsZero():
			o.ours, o.standing = true, now
		}
		return false
	})
}

// Contests forgets what has settled and returns what is contested, sorted.
func (p *Primary) Contests(now time.Time) (all []Contest) {
	maps.DeleteFunc(p.overwritten, func(_ rrset.Key, o *overwrite) bool {
		if o.pause == 0 {
			return now.Sub(o.last) > contestWindow
		}
		return !o.standing.IsZero() && now.Sub(o.standing) >= o.settledAfter()
	})
	for key, o := range p.overwritten {
		if o.pause > 0 {
			all = append(all, Contest{key, o.seen, o.wanted, !o.standing.IsZero(), o.count, o.first, o.last.Add(o.pause)})
		}
	}
	slices.SortFunc(all, func(a, b Contest) int { return a.Key.Compare(b.Key) })
	return all
}

// IsUnconfirmed reports whether a contested RRset has been as declared for a moment only.
func (p *Primary) IsUnconfirmed(key rrset.Key, now time.Time) bool {
	o := p.overwritten[key]
	return o != nil && o.pause > 0 && (o.standing.IsZero() || now.Sub(o.standing) < confirmDuration)
}

// isPaused reports whether the correction of a contested RRset is not due yet.
func (p *Primary) isPaused(key rrset.Key, wanted rrset.RRset, now time.Time) bool {
	o := p.overwritten[key]
	return o != nil && (p.owner != "" || o.wanted.Equal(wanted)) && now.Before(o.last.Add(o.pause))
}

// NextLook returns after how long the server is looked at again for what was overwritten there; not ok if nothing was.
func (p *Primary) NextLook(now time.Time) (after time.Duration, ok bool) {
	for _, o := range p.overwritten {
		left := lookInterval
		switch stood := now.Sub(o.standing); {
		case o.standing.IsZero():
			left = o.last.Add(o.pause).Sub(now)
		case stood < lookDuration:
		case o.pause > 0:
			left = o.settledAfter() - stood
		default:
			continue
		}
		if left = max(left, minRetry); !ok || left < after {
			after, ok = left, true
		}
	}
	return after, ok
}

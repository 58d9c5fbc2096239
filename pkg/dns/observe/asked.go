package observe

import (
	"slices"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/snapshot"
)

// Question is a name and type that a server is asked about because of what should be there.
type Question struct {
	rrset.Key
	// Want is what should be there; without data if that is nothing.
	Want rrset.RRset
	// For identifies the declaration that asks: an answer to a question for another one says nothing about it.
	For uint64
}

// Differs compares an answer with what should be there. The TTL of an RRset without data does not count.
func (q Question) Differs(have rrset.RRset) bool {
	return !slices.Equal(q.Want.Rdata, have.Rdata) || len(have.Rdata) > 0 && q.Want.TTL != have.TTL
}

// Asked is that a server was asked about a name and type. What it answered is in the Mirror.
type Asked struct {
	// At is when the question was sent.
	At time.Time
	// For is that of the Question.
	For uint64
	// Err is why the answer does not show what the server has there; nil if it does.
	Err error
	// era is the mirror's if its SOA was that of the zone before and after the answer, else 0.
	era uint32
}

// askedOverhead is what an Asked takes in memory, in bytes.
const askedOverhead = 128

type askedNames = snapshot.Map[rrset.Key, Asked]

// answered is the answer to a Question.
type answered struct {
	Question
	at  time.Time
	set rrset.RRset
	err error
}

// NewPartialMirror returns a mirror that knows nothing but the answers to questions for some names and types, given at one time: an RRset
// without data does not exist.
func NewPartialMirror(zone string, soa rrset.SOA, at time.Time, sets ...rrset.RRset) *Mirror {
	m := (*Mirror)(nil).rebased(zone, soa)
	answers := make([]answered, len(sets))
	for i, s := range sets {
		answers[i] = answered{Question: Question{Key: s.Key}, at: at, set: s}
	}
	return m.withAnswers(answers, m.era)
}

// IsPartial is true for mirrors that know nothing but the answers to some questions; see Asked.
func (m *Mirror) IsPartial() bool { return m.era > 0 }

// Asked has what a server was asked last about a name and type; false if it was not asked. Only partial mirrors have it.
func (m *Mirror) Asked(k rrset.Key) (Asked, bool) { return m.asked.Get(k) }

// rebased continues a partial mirror at an SOA. If that differs from the one before, earlier answers may be outdated. m may be nil.
func (m *Mirror) rebased(zone string, soa rrset.SOA) *Mirror {
	if m == nil {
		return &Mirror{Zone: zone, SOA: soa, era: 1, content: snapshot.New[rrset.Key, rrset.RRset](hashByName), asked: snapshot.New[rrset.Key, Asked](hashByName)}
	}
	if m.SOA == soa {
		return m
	}
	next := *m
	next.SOA, next.era, next.version = soa, m.era+1, m.version+1
	return &next
}

// withAnswers adds answers to a partial mirror. era is the one in which they were given, 0 if the zone changed meanwhile. Older answers
// do not replace newer ones.
func (m *Mirror) withAnswers(answers []answered, era uint32) *Mirror {
	e, asked := m.beginEdit(), m.asked.Edit()
	for _, a := range answers {
		last, known := asked.Get(a.Key)
		switch {
		case known && last.At.After(a.at):
			continue
		case !known:
			e.bytes += askedOverhead
		}
		asked.Put(a.Key, Asked{At: a.at, For: a.For, Err: a.err, era: era})
		if a.err != nil {
			a.set = rrset.RRset{Key: a.Key}
		}
		e.replace(a.set)
	}
	next := *m
	next.content, next.asked, next.counts, next.version = e.Map(), asked.Map(), e.counts, m.version+1
	return &next
}

// isAskedAlike reports whether both questions were answered, for the same declaration, or neither was.
func isAskedAlike(a, b Asked) bool { return a.For == b.For && (a.Err == nil) == (b.Err == nil) }

// SeenAt is the last time at which the server is known to have had what the mirror has at a name and type; known is false if there is
// none. An answer remains good while the SOA stays what it was before and after it, as a transferred zone does.
func (o *Observation) SeenAt(k rrset.Key) (at time.Time, known bool) {
	switch {
	case o.Mirror == nil:
		return at, false
	case !o.Mirror.IsPartial():
		return o.At, true
	}
	a, asked := o.Mirror.Asked(k)
	switch {
	case !asked || a.Err != nil:
		return at, false
	case a.era == o.Mirror.era && o.At.After(a.At):
		return o.At, true
	}
	return a.At, true
}

// Precedes reports whether an observation is older than another one of the same server and zone.
func (o *Observation) Precedes(other *Observation) bool {
	if o.At.Equal(other.At) && o.Mirror != nil && other.Mirror != nil {
		return o.Mirror.version < other.Mirror.version
	}
	return o.At.Before(other.At)
}

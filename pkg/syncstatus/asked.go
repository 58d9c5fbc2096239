package syncstatus

import (
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/snapshot"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// MaxAnswerAge is how old an answer for an RRset may be, at most, when the zone may have changed since: what the age of answers in
// a list may be at most, too.
const MaxAnswerAge = time.Minute

// QuestionFor asks for what should be at a name and type.
func (d *DesiredState) QuestionFor(k rrset.Key) observe.Question {
	q := observe.Question{Key: k, Want: rrset.RRset{Key: k}}
	if d.desired == nil {
		return q
	}
	if s, declared := d.desired.RRsets.Get(k); declared {
		q.Want, q.For = s.RRset, identify(s.Owners)
	}
	return q
}

// identify numbers the objects, in their generations, that declare an RRset. What was declared before and is again has another number:
// servers may have had something else in between.
func identify(owners [][]*source.Ref) uint64 {
	type version struct {
		uid        types.UID
		generation int64
	}
	var sum uint64
	for _, of := range owners {
		for _, o := range of {
			sum += maphash.Comparable(seed, version{o.UID, o.Generation})
		}
	}
	return sum
}

// Questions yields the questions for all that is declared in the zone, or has still to be removed.
func (d *DesiredState) Questions() iter.Seq[observe.Question] {
	return func(yield func(observe.Question) bool) {
		if d.desired == nil {
			return
		}
		for want := range d.desired.All() {
			if !yield(d.QuestionFor(want.Key)) {
				return
			}
		}
		for k := range d.pending.All() {
			if _, declared := d.desired.Get(k); !declared && !yield(d.QuestionFor(k)) {
				return
			}
		}
	}
}

// QuestionsOf are the questions on which an object's state in the zone depends; those for the name servers of the zone itself.
func (d *DesiredState) QuestionsOf(object source.ObjectKey) []observe.Question {
	keys := []rrset.Key{{Name: d.ZoneName(), Type: dns.TypeNS}}
	if o := d.Object(object); o != nil {
		own, left := d.keysOf(o, false)
		keys = append(own, left...)
	}
	questions := make([]observe.Question, len(keys))
	for i, k := range keys {
		questions[i] = d.QuestionFor(k)
	}
	return questions
}

// contentAt is what a server has where something should be, and when it was last known to have that. Of a server that is read by query
// that is known if it was asked since the declaration is as it is, and either lately or under the SOA that it still has. Only the latter
// shows that declared data is missing.
func (e *serverAnswer) contentAt(d *DesiredState, k rrset.Key) (want, have rrset.RRset, at time.Time, known bool) {
	if !e.mirror.IsPartial() {
		have, _ = e.have(d, k)
		return d.desiredAt(k), have, e.observed.At, true
	}
	q := d.QuestionFor(k)
	have, _ = e.mirror.Get(k)
	at, known = e.observed.SeenAt(k)
	if a, _ := e.mirror.Asked(k); !known || a.For != q.For || at.Before(e.since) {
		return q.Want, have, at, false
	}
	if len(q.Want.Rdata) == 0 && d.isWildcardData(have) {
		have = rrset.RRset{Key: k}
	}
	if e.unsigned {
		have = uncached(q.Want, have)
	}
	isCurrent := at.Equal(e.observed.At) || e.row.Serial == nil
	return q.Want, have, at, isCurrent || !q.Differs(have)
}

// have is what a server that is not read by query has of an RRset. With an owner, it is what is declared if that is there beside others, which are
// values with their owners.
func (e *serverAnswer) have(d *DesiredState, k rrset.Key) (have rrset.RRset, others []string) {
	if e.owner != "" && d.desired != nil {
		return viewOf(d.desired, e.mirror, e.owner).Have(k, d.desiredAt(k))
	}
	have, _ = e.mirror.Get(k)
	return have, nil
}

// knows reports whether a server has ever answered for a name and type.
func (e *serverAnswer) knows(k rrset.Key) bool {
	_, known := e.observed.SeenAt(k)
	return known
}

// isWildcardData recognizes the data of a declared wildcard above: whether it is at the name itself, a query does not show.
func (d *DesiredState) isWildcardData(have rrset.RRset) bool {
	if len(have.Rdata) == 0 {
		return false
	}
	for name := range rrset.NamesBelow(d.ZoneName(), have.Name) {
		if w := d.desiredAt(rrset.Key{Name: "*." + rrset.ParentName(name), Type: have.Type}); w.TTL == have.TTL && slices.Equal(w.Rdata, have.Rdata) {
			return true
		}
	}
	return false
}

// unknowns are the RRsets of which it is not known whether a server has them.
type unknowns struct {
	count, waiting int
	// failed is the first question without a usable answer, err why.
	failed rrset.Key
	err    error
}

// add notes an RRset; pending is true if the controller still has to bring it to the servers.
func (u *unknowns) add(m *observe.Mirror, k rrset.Key, pending bool) {
	u.count++
	if pending {
		u.waiting++
	}
	if a, _ := m.Asked(k); a.Err != nil && (u.err == nil || k.Compare(u.failed) < 0) {
		u.failed, u.err = k, a.Err
	}
}

// describeIn completes the row of a server; state is that by all that is known.
func (u *unknowns) describeIn(row *syncv1.ServerStatus, of int) {
	if u.count == 0 {
		return
	}
	message := fmt.Sprintf("%d of %d RRsets have not been asked lately", u.count, of)
	var we *wire.Error
	if errors.As(u.err, &we) {
		message = fmt.Sprintf("%d of %d RRsets are not known; query of %s: %s", u.count, of, u.failed, we.Detail())
	}
	if row.State != syncv1.StateInSync {
		row.Message += "; " + message
		return
	}
	switch {
	case u.waiting == u.count:
		row.State, row.Message = syncv1.StateStale, "the change has not been programmed yet"
		return
	case we != nil && (we.Rcode == dns.RcodeRefused || we.TSIGError != 0):
		row.State = syncv1.StateRefused
	case we != nil && we.Rcode == dns.RcodeServerFailure:
		row.State = syncv1.StateNotLoaded
	default:
		row.State = syncv1.StateUnreachable
	}
	row.Message = message
}

// setObservedAt sets the time of the oldest answer that a row is based on.
func setObservedAt(row *syncv1.ServerStatus, oldest time.Time) {
	if !oldest.IsZero() && (row.ObservedAt == nil || !row.ObservedAt.Time.Equal(oldest)) {
		row.ObservedAt = new(metav1.NewMicroTime(oldest))
	}
}

// compareAnswers compares all that is declared in a zone with what a server that is read by query has answered. What nobody declares
// is not known there.
func compareAnswers(d *DesiredState, e *serverAnswer) *serverComparison {
	c := &serverComparison{desired: d.desired, pending: d.pending, mirror: e.mirror, shared: e.shared != ""}
	edit := snapshot.New[rrset.Key, struct{}](hashByName).Edit()
	for q := range d.Questions() {
		if c.isApex(q.Key) {
			c.apex++
			continue
		}
		want, have, at, known := e.contentAt(d, q.Key)
		switch {
		case !known:
			c.unknown.add(e.mirror, q.Key, d.isPending(q.Key))
			if len(want.Rdata) > 0 {
				c.unknownDeclared++
			}
			continue
		case !sameData(want, have):
			edit.Put(q.Key, struct{}{})
			c.countKey(q.Key)
		}
		c.oldest = status.Earlier(c.oldest, at)
		c.unconfirmed = c.unconfirmed || e.unsigned && !d.isConfirmed(q.Key)
	}
	c.off = edit.Map()
	c.pickShown()
	return c
}

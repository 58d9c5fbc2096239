package syncstatus

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// A server without keys (observe.Server.Unsigned: a replica of CoreDNS) signs nothing, has no serial, and may answer from a cache. Its
// answers alone prove nothing: a row is in sync if they are as declared and the controller has read the same in etcd, over the
// connection that it writes on.

// notSigned is what readers of a row should know whose answers are as declared.
const notSigned = "the answers are not signed; the controller has read the same in etcd"

// negativeTTL is for how long CoreDNS' plugin etcd has caches remember that there is nothing, and a little more.
const negativeTTL = 30 * time.Second

// cacheSlack is how much later a cache may end: status times have whole seconds.
const cacheSlack = 2 * time.Second

// uncached gives an answer of a server without keys the TTL that it had before it was cached, if it may be that which is wanted: in a
// cache the TTL counts down.
func uncached(want, have rrset.RRset) rrset.RRset {
	if have.TTL < want.TTL && slices.Equal(want.Rdata, have.Rdata) {
		have.TTL = want.TTL
	}
	return have
}

// isCached reports whether a server without keys may have answered, at a time, from a cache with what was declared before: for the TTL of
// that after etcd got what is declared now.
func (ev *Evaluation) isCached(k rrset.Key, have rrset.RRset, at time.Time) bool {
	programmed := ev.programmedAt(k)
	want := ev.desiredAt(k)
	kept := max(time.Duration(max(want.TTL, have.TTL))*time.Second, negativeTTL) + cacheSlack
	return !programmed.IsZero() && at.Before(programmed.Add(kept))
}

// programmedAt is when the controller last programmed what objects declare at a name and type; zero if it does not say.
func (ev *Evaluation) programmedAt(k rrset.Key) (last time.Time) {
	if ev.desired == nil {
		return last
	}
	s, _ := ev.desired.RRsets.Get(k)
	yieldOwners(s, func(key source.ObjectKey) bool {
		var at time.Time
		switch o := ev.Object(key).(type) {
		case v1beta1.Record:
			if updated := o.GetRecordStatus().LastUpdated; updated != nil {
				at = updated.Time
			}
		case nil:
		default:
			if c := meta.FindStatusCondition(conditionsOf(o), status.Programmed); c != nil {
				at = c.LastTransitionTime.Time
			}
		}
		if at.After(last) {
			last = at
		}
		return true
	})
	return last
}

// unsignedState is the state of a server without keys on which so many RRsets are not as declared, so many of these missing, and so many
// perhaps cached.
func unsignedState(differing, missing, cached int) (syncv1.ServerState, string) {
	switch differing {
	case cached:
		return syncv1.StateStale, "etcd has what is declared; the server may answer from its cache until the TTL of the older data ends"
	case missing:
		return syncv1.StateMissing, "etcd had what is declared when the controller last read it, but the server answers without the data"
	}
	return syncv1.StateDivergent, "etcd had what is declared when the controller last read it, but the server answers otherwise: was it changed in etcd, or does another plugin answer?"
}

// isConfirmed reports whether the controller says that it has read what is declared at a name and type wherever the zone is kept.
func (d *DesiredState) isConfirmed(k rrset.Key) bool {
	if d.desired == nil || d.isPending(k) || d.isUnobserved() {
		return false
	}
	s, _ := d.desired.RRsets.Get(k)
	confirmed := true
	yieldOwners(s, func(key source.ObjectKey) bool {
		if o := d.Object(key); o != nil {
			confirmed = meta.IsStatusConditionTrue(conditionsOf(o), status.Programmed)
		}
		return confirmed
	})
	return confirmed
}

// confirmUnsigned completes the row of a server without keys that answers as declared. It is in sync if all of it is confirmed.
func (e *serverAnswer) confirmUnsigned(row *syncv1.ServerStatus, confirmed bool) {
	if !e.unsigned || row.State != syncv1.StateInSync {
		return
	}
	switch {
	case e.configured == v1beta1.ZoneFailed:
		row.State, row.Message = syncv1.StateUnreachable, fmt.Sprintf("the answers are as declared, but not signed, and etcd could not be read: %s", e.why)
	case !confirmed || e.configured != v1beta1.ZoneConfigured:
		row.State, row.Message = syncv1.StateStale, "the answers are as declared, but not signed, and the controller has not read the same in etcd yet"
	case row.Message == "":
		row.Message = notSigned
	default:
		row.Message += "; " + notSigned
	}
}

// countCached is how many of some RRsets a server without keys may have answered from a cache; fewer than all if any was not.
func (ev *Evaluation) countCached(e *serverAnswer, off iter.Seq2[rrset.Key, struct{}]) (n int) {
	for k := range off {
		_, have, at, _ := e.contentAt(ev.DesiredState, k)
		if !ev.isCached(k, have, at) {
			return n
		}
		n++
	}
	return n
}

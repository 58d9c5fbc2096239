package syncstatus

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sync "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// verdict collects what the conditions and the phase of one object follow from.
type verdict struct {
	accepted status.Verdict
	// stalled is the controller's own word that it gave up, nil when it did not.
	stalled *metav1.Condition
	rows    []sync.ServerStatus
	waiting []bool // by row: the zone is still to be configured there
	// stored are the conditions on the object itself; their transition times are taken over where they agree.
	stored     []metav1.Condition
	generation int64
	at         time.Time
	// remark is added to the message of the phase; empty when there is none.
	remark string
	// nothing is true for an object that declares no data: it is in step wherever it is.
	nothing bool
}

// severity orders states for messages: the first that a person should look at comes first.
var severity = []sync.ServerState{
	sync.StateDivergent, sync.StateMissing, sync.StateLame, sync.StateRefused, sync.StateNotLoaded,
	sync.StateUnreachable, sync.StateStale,
}

func (v verdict) status() sync.SyncStatusStatus {
	programmed, propagated := v.programmed(), v.propagated()
	propagated.Message = remarked(propagated.Message, v.remark)
	out := sync.SyncStatusStatus{Phase: v.phase()}
	out.InSync = out.Phase == sync.PhaseInSync
	if out.Phase == sync.PhaseFailed {
		out.FailureReason, out.FailureMessage = v.accepted.Reason, v.accepted.Message
		if v.accepted.Status == metav1.ConditionTrue {
			out.FailureReason, out.FailureMessage = v.stalled.Reason, v.stalled.Message
		}
		out.FailureMessage = remarked(out.FailureMessage, v.remark)
	}
	out.Conditions = []metav1.Condition{
		v.condition(sync.ConditionAccepted, v.accepted),
		v.condition(sync.ConditionProgrammed, programmed),
		v.condition(sync.ConditionPropagated, propagated),
	}
	return out
}

func remarked(message, remark string) string {
	if remark == "" {
		return message
	}
	return message + "; " + remark
}

// condition renders a verdict. Its transition time is that of the object's own condition of the same type and status
// where there is one, else the time of the observation: since when it holds is not known, only that it holds then.
func (v verdict) condition(kind string, s status.Verdict) metav1.Condition {
	c := metav1.Condition{
		Type: kind, Status: s.Status, Reason: s.Reason, Message: s.Message,
		ObservedGeneration: v.generation, LastTransitionTime: metav1.NewTime(v.at.Truncate(time.Second)),
	}
	if own := meta.FindStatusCondition(v.stored, kind); own != nil && own.Status == c.Status {
		c.LastTransitionTime = own.LastTransitionTime
	}
	return c
}

func (v verdict) phase() sync.Phase {
	switch {
	case v.accepted.Status == metav1.ConditionFalse:
		return sync.PhaseFailed
	case v.nothing:
		return sync.PhaseInSync
	case len(v.rows) == 0 || count(v.rows, sync.StateUnreachable) == len(v.rows):
		return sync.PhaseUnknown
	case count(v.rows, sync.StateInSync) == len(v.rows):
		return sync.PhaseInSync
	case v.stalled != nil:
		return sync.PhaseFailed
	}
	for i := range v.rows {
		switch v.rows[i].State {
		case sync.StateInSync, sync.StateStale:
		case sync.StateNotLoaded, sync.StateRefused, sync.StateMissing:
			if !v.waiting[i] {
				return sync.PhaseOutOfSync
			}
		default:
			return sync.PhaseOutOfSync
		}
	}
	return sync.PhasePropagating
}

func (v verdict) programmed() status.Verdict {
	var primaries []sync.ServerStatus
	for i := range v.rows {
		if v.rows[i].Role == primaryRole {
			primaries = append(primaries, v.rows[i])
		}
	}
	switch {
	case v.accepted.Status == metav1.ConditionFalse:
		return status.No(v.accepted.Reason, "not accepted: "+v.accepted.Message)
	case v.nothing:
		return status.Yes(string(sync.StateInSync), "there is nothing to serve")
	case len(primaries) == 0:
		return status.Maybe(status.NoPrimaryInstances, "the zone has no primary server")
	}
	out := overall(primaries, "primary", "primaries")
	if out.Status == metav1.ConditionFalse && v.stalled != nil {
		return status.No(v.stalled.Reason, v.stalled.Message)
	}
	return out
}

func (v verdict) propagated() status.Verdict {
	switch {
	case v.accepted.Status == metav1.ConditionFalse:
		return status.No(v.accepted.Reason, "not accepted: "+v.accepted.Message)
	case v.nothing:
		return status.Yes(string(sync.StateInSync), "there is nothing to serve")
	case len(v.rows) == 0:
		return status.Maybe(status.NoPrimaryInstances, "the zone has no server")
	}
	return overall(v.rows, "server", "servers")
}

// overall is the verdict over some rows: True when all are in step, Unknown when those that are not could not be
// asked, else False with the gravest state as the reason.
func overall(rows []sync.ServerStatus, one, many string) status.Verdict {
	in := count(rows, sync.StateInSync)
	if len(rows) == 1 {
		many = one
	}
	said := fmt.Sprintf("%d of %d %s in step", in, len(rows), many)
	if in == len(rows) {
		return status.Yes(string(sync.StateInSync), said)
	}
	worst, names := worstOf(rows)
	said += fmt.Sprintf("; %s: %s", worst, strings.Join(names, ", "))
	if in+count(rows, sync.StateUnreachable) == len(rows) {
		return status.Maybe(string(worst), said)
	}
	return status.No(string(worst), said)
}

func worstOf(rows []sync.ServerStatus) (sync.ServerState, []string) {
	for _, state := range severity {
		var names []string
		for _, r := range rows {
			if r.State == state {
				names = append(names, r.Pod)
			}
		}
		if len(names) > 0 {
			return state, names
		}
	}
	return "", nil
}

func count(rows []sync.ServerStatus, state sync.ServerState) int {
	n := 0
	for i := range rows {
		if rows[i].State == state {
			n++
		}
	}
	return n
}

func summarize(rows []sync.ServerStatus) sync.Summary {
	return sync.Summary{
		Servers:     int32(len(rows)),                          //nolint:gosec // pods
		InSync:      int32(count(rows, sync.StateInSync)),      //nolint:gosec // pods
		Unreachable: int32(count(rows, sync.StateUnreachable)), //nolint:gosec // pods
	}
}

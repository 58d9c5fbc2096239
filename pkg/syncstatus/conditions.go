package syncstatus

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// statusFacts is what the conditions and the phase of one object follow from.
type statusFacts struct {
	accepted status.Verdict
	// stalled is the controller's condition if it has given up, else nil.
	stalled *metav1.Condition
	rows    []syncv1.ServerStatus
	waiting []bool // by row: the zone is not configured there yet
	// stored are the conditions of the object itself; where they agree, their transition times are used.
	stored     []metav1.Condition
	generation int64
	at         time.Time
	// remark is added to the message of the phase; empty if there is none.
	remark string
	// access is what clients get.
	access access
	// gaps are what of the chains above the zones could not be reached.
	gaps []string
	// nothing is true for an object that declares no data: it is always in sync.
	nothing bool
}

// severity orders states for messages, the most severe first.
var severity = []syncv1.ServerState{
	syncv1.StateDivergent, syncv1.StateMissing, syncv1.StateShadowed, syncv1.StateBogus, syncv1.StateLame, syncv1.StateRefused, syncv1.StateNotLoaded, syncv1.StateHeld,
	syncv1.StateUnreachable, syncv1.StateStale,
}

func (v statusFacts) buildStatus() syncv1.SyncStatusStatus {
	programmed, propagated := v.programmed(), v.propagated()
	propagated.Message = withRemark(propagated.Message, v.remark)
	out := syncv1.SyncStatusStatus{Phase: v.phase()}
	out.InSync = out.Phase == syncv1.PhaseInSync
	if out.Phase == syncv1.PhaseFailed {
		out.FailureReason, out.FailureMessage = v.accepted.Reason, v.accepted.Message
		if v.accepted.Status == metav1.ConditionTrue {
			out.FailureReason, out.FailureMessage = v.stalled.Reason, v.stalled.Message
		}
		out.FailureMessage = withRemark(out.FailureMessage, v.remark)
	}
	out.Conditions = []metav1.Condition{
		v.newCondition(syncv1.ConditionAccepted, v.accepted),
		v.newCondition(syncv1.ConditionProgrammed, programmed),
		v.newCondition(syncv1.ConditionPropagated, propagated),
	}
	if validated := v.validated(); validated.Status != "" && v.accepted.Status != metav1.ConditionFalse {
		out.Conditions = append(out.Conditions, v.newCondition(syncv1.ConditionValidated, validated))
	}
	return out
}

func withRemark(message, remark string) string {
	if remark == "" {
		return message
	}
	return message + "; " + remark
}

// newCondition returns a verdict as a condition. Its transition time is that of the object's own condition of the same
// type and status if there is one, else the time of the observation.
func (v statusFacts) newCondition(kind string, s status.Verdict) metav1.Condition {
	c := metav1.Condition{
		Type: kind, Status: s.Status, Reason: s.Reason, Message: s.Message,
		ObservedGeneration: v.generation, LastTransitionTime: metav1.NewTime(v.at.Truncate(time.Second)),
	}
	if own := meta.FindStatusCondition(v.stored, kind); own != nil && own.Status == c.Status {
		c.LastTransitionTime = own.LastTransitionTime
	}
	return c
}

func (v statusFacts) phase() syncv1.Phase {
	allInSync := countState(v.rows, syncv1.StateInSync) == len(v.rows)
	switch {
	case v.accepted.Status == metav1.ConditionFalse:
		return syncv1.PhaseFailed
	case v.nothing:
		return syncv1.PhaseInSync
	case len(v.rows) == 0 || countState(v.rows, syncv1.StateUnreachable) == len(v.rows):
		return syncv1.PhaseUnknown
	case allInSync && v.access.soon:
		return syncv1.PhasePropagating
	case allInSync && v.access.problem != "":
		return syncv1.PhaseOutOfSync
	case allInSync:
		return syncv1.PhaseInSync
	case v.stalled != nil:
		return syncv1.PhaseFailed
	}
	for i := range v.rows {
		switch v.rows[i].State {
		case syncv1.StateInSync, syncv1.StateStale:
		case syncv1.StateNotLoaded, syncv1.StateRefused, syncv1.StateMissing:
			if !v.waiting[i] {
				return syncv1.PhaseOutOfSync
			}
		default:
			return syncv1.PhaseOutOfSync
		}
	}
	return syncv1.PhasePropagating
}

func (v statusFacts) programmed() status.Verdict {
	var primaries []syncv1.ServerStatus
	for i := range v.rows {
		if v.rows[i].Role == string(observe.Primary) {
			primaries = append(primaries, v.rows[i])
		}
	}
	switch {
	case v.accepted.Status == metav1.ConditionFalse:
		return status.False(v.accepted.Reason, "not accepted: "+v.accepted.Message)
	case v.nothing:
		return status.True(string(syncv1.StateInSync), "there is nothing to serve")
	case len(primaries) == 0:
		return status.Unknown(status.NoPrimaryInstances, "the zone has no primary server")
	}
	out := summarizeRows(primaries, "primary", "primaries")
	if out.Status == metav1.ConditionFalse && v.stalled != nil {
		return status.False(v.stalled.Reason, v.stalled.Message)
	}
	return out
}

func (v statusFacts) propagated() status.Verdict {
	switch {
	case v.accepted.Status == metav1.ConditionFalse:
		return status.False(v.accepted.Reason, "not accepted: "+v.accepted.Message)
	case v.nothing:
		return status.True(string(syncv1.StateInSync), "there is nothing to serve")
	case len(v.rows) == 0:
		return status.Unknown(status.NoPrimaryInstances, "the zone has no server")
	}
	out := summarizeRows(v.rows, "server", "servers")
	if out.Holds() && v.access.problem != "" {
		return status.False(v.access.reason, out.Message+"; "+v.access.problem)
	}
	out.Message = withRemark(out.Message, v.access.doubt)
	return out
}

// summarizeRows returns the verdict over some rows: True if all are in sync, Unknown if the others could not be asked, else
// False with the most severe state as the reason.
func summarizeRows(rows []syncv1.ServerStatus, one, many string) status.Verdict {
	in, all := countServers(rows)
	if all == 1 {
		many = one
	}
	message := countOf(in, all, many, "in sync")
	if in == all {
		return status.True(string(syncv1.StateInSync), message)
	}
	states := StatesNotInSync(rows)
	return notInSync(states, message+describeStates(rows, states))
}

// notInSync is the verdict over rows of which some are in these states, the most severe first: Unknown if these could not be asked.
func notInSync(states []syncv1.ServerState, message string) status.Verdict {
	if len(states) == 1 && states[0] == syncv1.StateUnreachable {
		return status.Unknown(string(states[0]), message)
	}
	return status.False(string(states[0]), message)
}

// countOf says how many of all are such. Every object has three such sentences, for which fmt would allocate more.
func countOf(n, all int, many, such string) string {
	return strconv.Itoa(n) + " of " + strconv.Itoa(all) + " " + many + " " + such
}

// StatesNotInSync are the states of rows, and of the zones of instances, that are not in sync: the most severe first.
func StatesNotInSync(rows []syncv1.ServerStatus) (states []syncv1.ServerState) {
	add := func(s syncv1.ServerState) {
		if s != syncv1.StateInSync && !slices.Contains(states, s) {
			states = append(states, s)
		}
	}
	for i := range rows {
		if add(rows[i].State); rows[i].Zones != nil {
			for _, z := range rows[i].Zones.Worst {
				add(z.State)
			}
		}
	}
	slices.SortFunc(states, func(a, b syncv1.ServerState) int { return cmp.Compare(severityRank(a), severityRank(b)) })
	return states
}

// describeStates names the servers in each of some states.
func describeStates(rows []syncv1.ServerStatus, states []syncv1.ServerState) (text string) {
	for _, state := range states {
		if names := namesWith(rows, func(r *syncv1.ServerStatus) bool { return r.State == state }); len(names) > 0 {
			text += "; " + string(state) + ": " + strings.Join(names, ", ")
		}
	}
	return text
}

// namesWith names the servers of which a row is such, each once.
func namesWith(rows []syncv1.ServerStatus, isSuch func(*syncv1.ServerStatus) bool) (names []string) {
	for i := range rows {
		if name := rows[i].ServerName(); isSuch(&rows[i]) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func countState(rows []syncv1.ServerStatus, state syncv1.ServerState) int {
	n := 0
	for i := range rows {
		if rows[i].State == state {
			n++
		}
	}
	return n
}

// countServers counts servers, and those of which all rows are in sync.
func countServers(rows []syncv1.ServerStatus) (in, all int) {
	all = serversWith(rows, func(*syncv1.ServerStatus) bool { return true })
	return all - serversWith(rows, func(r *syncv1.ServerStatus) bool { return r.State != syncv1.StateInSync }), all
}

// serversWith counts the servers of which a row is such. A DNSEndpoint has a row for each of its zones on a server, all else one for each
// server.
func serversWith(rows []syncv1.ServerStatus, isSuch func(*syncv1.ServerStatus) bool) int {
	type server struct{ namespace, name string }
	n, seen := 0, map[server]bool{}
	for i := range rows {
		if !isSuch(&rows[i]) {
			continue
		}
		if rows[i].Zone == "" {
			n++
		} else {
			seen[server{rows[i].Namespace, rows[i].ServerName()}] = true
		}
	}
	return n + len(seen)
}

// summarizeServers counts as unreachable who did not answer, not who did and could not be compared or validated: Propagated and Validated
// count these.
func summarizeServers(rows []syncv1.ServerStatus) syncv1.Summary {
	in, all := countServers(rows)
	unreachable := serversWith(rows, func(r *syncv1.ServerStatus) bool { return r.State == syncv1.StateUnreachable && r.Rcode == "" })
	return syncv1.Summary{Servers: int32(all), InSync: int32(in), Unreachable: int32(unreachable)} //nolint:gosec // pods
}

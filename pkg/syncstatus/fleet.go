package syncstatus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// InstanceStatus judges an instance by its pods and their answers: seen has the answers of one, and is nil if no pod was asked.
func InstanceStatus(i *v1beta1.Bind9Instance, servers []observe.Server, seen func(observe.Server) PodAnswers, now time.Time) *syncv1.SyncStatus {
	return fleetStatus(subject.New(i, subject.InstanceKind.Kind), i.Status.LifecycleStatus, i.Status.Conditions, servers, seen, now)
}

// ClusterStatus judges a cluster of the given kind by the pods of its instances and their answers. The SyncStatus of a cluster-scoped one
// is in the namespace of its instances.
func ClusterStatus(kind subject.Kind, c metav1.Object, s *v1beta1.Bind9ClusterStatus, servers []observe.Server, seen func(observe.Server) PodAnswers, now time.Time) *syncv1.SyncStatus {
	out := subject.New(c, kind.Kind)
	if kind != subject.ClusterKind {
		out.ObjectRef.Namespace = ""
	}
	return fleetStatus(out, s.LifecycleStatus, s.Conditions, servers, seen, now)
}

func fleetStatus(out *syncv1.SyncStatus, own v1beta1.LifecycleStatus, stored []metav1.Condition, servers []observe.Server, seen func(observe.Server) PodAnswers, now time.Time) *syncv1.SyncStatus {
	podsReady, foreign := 0, ""
	for _, s := range servers {
		var answers PodAnswers
		if seen != nil && s.Addr.IsValid() {
			answers = seen(s)
		}
		row := rowOfPod(s, answers, out.Namespace)
		if foreign = cmp.Or(foreign, s.Foreign); s.PodReady {
			podsReady++
		}
		out.Servers = append(out.Servers, row)
		if at := row.ObservedAt; at != nil && (out.ObservedAt == nil || at.Before(out.ObservedAt)) {
			out.ObservedAt = at
		}
	}
	out.Summary = summarizeServers(out.Servers)
	ready := podsVerdict(podsReady, len(servers))
	if ready.Holds() && foreign != "" {
		ready = status.False(status.ForeignPods, ready.Message+"; "+foreign)
	}
	propagated := zonesVerdict(ready, out.Servers)
	v := statusFacts{generation: out.Generation, stored: stored, at: now}
	out.Status.Conditions = []metav1.Condition{v.newCondition(syncv1.ConditionReady, ready), v.newCondition(syncv1.ConditionPropagated, propagated)}
	switch {
	case own.FailureReason != "" && ready.Status != metav1.ConditionTrue:
		out.Status.Phase = syncv1.PhaseFailed
		out.Status.FailureReason, out.Status.FailureMessage = own.FailureReason, own.FailureMessage
	case len(servers) == 0:
		out.Status.Phase = syncv1.PhaseUnknown
	case propagated.Holds():
		out.Status.Phase, out.Status.InSync = syncv1.PhaseInSync, true
	case ready.Holds() && propagated.Reason == string(syncv1.StateStale):
		out.Status.Phase = syncv1.PhasePropagating
	default:
		out.Status.Phase = syncv1.PhaseOutOfSync
	}
	return out
}

func rowOfPod(s observe.Server, seen PodAnswers, namespace string) syncv1.ServerStatus {
	row := syncv1.ServerStatus{
		Instance: s.Instance, Pod: s.Pod, Role: string(s.Role), PodPhase: s.PodPhase, PodReady: s.PodReady,
		State: syncv1.StateInSync, Restarts: s.Restarts, Version: seen.Version, Sidecar: seen.Sidecar,
	}
	if s.Namespace != namespace {
		row.Namespace = s.Namespace
	}
	if s.Addr.IsValid() {
		row.Address = s.Addr.String()
	}
	if !seen.At.IsZero() {
		row.ObservedAt = new(metav1.NewMicroTime(seen.At))
	}
	if len(seen.Zones) > 0 {
		row.Zones = serverZones(s.Role, seen.Zones)
	}
	switch {
	case s.PodReady && row.Zones != nil && row.Zones.OutOfSync > 0:
		row.State = row.Zones.Worst[0].State
		row.Message = fmt.Sprintf("%d of %d zones are out of sync%s", row.Zones.OutOfSync, len(seen.Zones), describeWorst(row.Zones.Worst))
	case s.PodReady:
	case s.Addr.IsValid():
		row.State, row.Message = syncv1.StateNotLoaded, cmp.Or(s.Message, "the pod is not ready")
	default:
		row.State, row.Message = syncv1.StateUnreachable, podMessage(s)
	}
	return row
}

// describeWorst says what is wrong with the first zone of each state.
func describeWorst(zones []syncv1.ServerZone) (text string) {
	for i, z := range zones {
		if z.State != syncv1.StateInSync && (i == 0 || z.State != zones[i-1].State) {
			text += "; " + z.Zone + ": " + z.Message
		}
	}
	return text
}

func podsVerdict(ready, all int) status.Verdict {
	message := fmt.Sprintf("%d of %d pods are ready", ready, all)
	switch {
	case all == 0:
		return status.False(status.NoChildren, "no pods are expected")
	case ready == all:
		return status.True(status.AllReady, message)
	case ready > 0:
		return status.False(status.PartiallyReady, message)
	}
	return status.False(status.NotReady, message)
}

// zonesVerdict is about the zones of ready pods; pods that are not ready come first. Clients that wait for all SyncStatuses of a
// namespace at once need it, too.
func zonesVerdict(ready status.Verdict, rows []syncv1.ServerStatus) status.Verdict {
	if !ready.Holds() {
		return ready
	}
	worst := slices.MinFunc(rows, func(a, b syncv1.ServerStatus) int { return cmp.Compare(severityRank(a.State), severityRank(b.State)) })
	if worst.State == syncv1.StateInSync {
		return ready
	}
	states := StatesNotInSync(rows)
	return notInSync(states, "pod "+worst.Pod+": "+worst.Message+describeStates(rows, states[1:]))
}

// PodAnswers is what one pod answered.
type PodAnswers struct {
	// At is when it was asked; zero if it was not.
	At time.Time
	// Version of BIND; empty if the server hides it.
	Version string
	// Sidecar is Ready or a condition's reason; empty if it was not asked.
	Sidecar string
	// Zones are those that the pod should serve.
	Zones []ZoneAnswer
}

// ZoneAnswer is what a pod answered about one zone.
type ZoneAnswer struct {
	// Zone is its DNS name without the final dot.
	Zone string
	observe.Observation
	// Newest is the newest serial of any primary; nil if none is known.
	Newest *uint32
}

// maxServerZones bounds the zones in a row.
const maxServerZones = 20

// serverZones counts zones by state and has the worst of them.
func serverZones(role observe.Role, seen []ZoneAnswer) *syncv1.ServerZones {
	out := &syncv1.ServerZones{}
	all := make([]syncv1.ServerZone, len(seen))
	for i, z := range seen {
		all[i] = serverZone(role, z)
		if all[i].State == syncv1.StateInSync {
			out.InSync++
		} else {
			out.OutOfSync++
		}
	}
	slices.SortFunc(all, func(a, b syncv1.ServerZone) int {
		return cmp.Or(cmp.Compare(severityRank(a.State), severityRank(b.State)), strings.Compare(a.Zone, b.Zone))
	})
	out.Worst = slices.Clip(all[:min(len(all), maxServerZones)])
	return out
}

// severityRank is 0 for the most severe state.
func severityRank(s syncv1.ServerState) int {
	if i := slices.Index(severity, s); i >= 0 {
		return i
	}
	return len(severity)
}

// serverZone is the state of one zone. Primaries are not compared with each other: whether they hold what is declared is part of the
// zone's own SyncStatus.
func serverZone(role observe.Role, z ZoneAnswer) syncv1.ServerZone {
	row := syncv1.ServerZone{Zone: z.Zone}
	if row.State, row.Message = answerState(z.Observation); row.State != "" {
		return row
	}
	if z.Unverified {
		row.State, row.Message = syncv1.StateRefused, "answers queries, but not with its key: "+z.Message()
		return row
	}
	row.State = syncv1.StateInSync
	row.Serial = new(int64(z.Serial))
	if z.Newest == nil {
		return row
	}
	lag := int64(int32(*z.Newest - z.Serial)) //nolint:gosec // wraps as intended (RFC 1982)
	row.SerialLag = &lag
	switch {
	case role == observe.Primary || lag == 0:
	case lag > 0:
		row.State, row.Message = syncv1.StateStale, fmt.Sprintf("serial %d is %d behind the primaries' %d", z.Serial, lag, *z.Newest)
	default:
		row.State, row.Message = syncv1.StateDivergent, fmt.Sprintf("serial %d is ahead of the primaries' %d: no transfer will repair it", z.Serial, *z.Newest)
	}
	return row
}

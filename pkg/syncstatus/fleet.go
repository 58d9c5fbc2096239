package syncstatus

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// InstanceStatus judges an instance by its pods and their answers: seen has the answers of one, and is nil if no pod was asked.
func InstanceStatus(i *v1beta1.Bind9Instance, servers []observe.Server, seen func(observe.Server) PodAnswers, now time.Time) *syncv1.SyncStatus {
	return fleetStatus(newSyncStatus(i, InstanceKind.Kind), i.Status.LifecycleStatus, i.Status.Conditions, servers, seen, now)
}

// ClusterStatus judges a cluster of the given kind by the pods of its instances and their answers. The SyncStatus of a cluster-scoped one
// is in the namespace of its instances.
func ClusterStatus(kind Kind, c metav1.Object, s *v1beta1.Bind9ClusterStatus, servers []observe.Server, seen func(observe.Server) PodAnswers, now time.Time) *syncv1.SyncStatus {
	out := newSyncStatus(c, kind.Kind)
	if kind != ClusterKind {
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
		worst := row.Zones.Worst[0]
		row.State = worst.State
		row.Message = fmt.Sprintf("%d of %d zones are out of sync; %s: %s", row.Zones.OutOfSync, len(seen.Zones), worst.Zone, worst.Message)
	case s.PodReady:
	case s.Addr.IsValid():
		row.State, row.Message = syncv1.StateNotLoaded, cmp.Or(s.Message, "the pod is not ready")
	default:
		row.State, row.Message = syncv1.StateUnreachable, podMessage(s)
	}
	return row
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
	for _, state := range severity {
		for _, r := range rows {
			if r.State == state {
				return status.False(string(state), "pod "+r.Pod+": "+r.Message)
			}
		}
	}
	return ready
}

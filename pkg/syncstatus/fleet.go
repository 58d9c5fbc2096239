package syncstatus

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	sync "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// Instance gives the SyncStatus of an instance from its pods. InSync means that the pod is ready, which it is only
// while it serves every zone that it should.
func Instance(i *v1beta1.Bind9Instance, servers []observe.Server, now time.Time) *sync.SyncStatus {
	return fleet(about(i, v1beta1.GroupVersion.String(), InstanceKind.Kind), i.Status.LifecycleStatus, i.Status.Conditions, servers, now)
}

// Cluster gives the SyncStatus of a cluster from the pods of its instances.
func Cluster(c *v1beta1.Bind9Cluster, servers []observe.Server, now time.Time) *sync.SyncStatus {
	return fleet(about(c, v1beta1.GroupVersion.String(), ClusterKind.Kind), c.Status.LifecycleStatus, c.Status.Conditions, servers, now)
}

func fleet(out *sync.SyncStatus, own v1beta1.LifecycleStatus, stored []metav1.Condition, servers []observe.Server, now time.Time) *sync.SyncStatus {
	for _, s := range servers {
		out.Servers = append(out.Servers, podRow(s, out.Namespace))
	}
	out.Summary = summarize(out.Servers)
	ready := readiness(out.Summary)
	v := verdict{generation: out.Generation, stored: stored, at: now}
	// A pod is ready only while it serves every zone that it should, so both are the same here. Propagated is there for
	// those who wait for all SyncStatuses of a namespace at once.
	out.Status.Conditions = []metav1.Condition{v.condition(sync.ConditionReady, ready), v.condition(sync.ConditionPropagated, ready)}
	switch {
	case own.FailureReason != "" && ready.Status != metav1.ConditionTrue:
		out.Status.Phase = sync.PhaseFailed
		out.Status.FailureReason, out.Status.FailureMessage = own.FailureReason, own.FailureMessage
	case len(servers) == 0:
		out.Status.Phase = sync.PhaseUnknown
	case ready.Status == metav1.ConditionTrue:
		out.Status.Phase, out.Status.InSync = sync.PhaseInSync, true
	default:
		out.Status.Phase = sync.PhaseOutOfSync
	}
	return out
}

func podRow(s observe.Server, namespace string) sync.ServerStatus {
	row := sync.ServerStatus{
		Instance: s.Instance, Pod: s.Pod, Role: string(s.Role), PodPhase: s.PodPhase, PodReady: s.PodReady,
		State: sync.StateInSync,
	}
	if s.Namespace != namespace {
		row.Namespace = s.Namespace
	}
	if s.Addr.IsValid() {
		row.Address = s.Addr.String()
	}
	switch {
	case s.PodReady:
	case s.Addr.IsValid():
		row.State, row.Message = sync.StateNotLoaded, cmp.Or(s.Message, "the pod is not ready")
	default:
		row.State, row.Message = sync.StateUnreachable, podMessage(s)
	}
	return row
}

func readiness(s sync.Summary) status.Verdict {
	said := fmt.Sprintf("%d of %d pods are ready", s.InSync, s.Servers)
	switch {
	case s.Servers == 0:
		return status.No(status.NoChildren, "no pods are expected")
	case s.InSync == s.Servers:
		return status.Yes(status.AllReady, said)
	case s.InSync > 0:
		return status.No(status.PartiallyReady, said)
	}
	return status.No(status.NotReady, said)
}

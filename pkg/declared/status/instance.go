package status

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// InstanceFacts is what one pass found about an instance.
type InstanceFacts struct {
	Generation int64
	// Pods are the expected pods by ordinal, including those that do not exist yet.
	Pods []PodFacts
	// ParentGeneration is that of the cluster.
	ParentGeneration int64
	// Address of the instance's Service within the Kubernetes cluster. Addresses are those that its clients use, from outside of it
	// if Exposed is true.
	Address   string
	Addresses []string
	Exposed   bool
	NodePorts *v1beta1.NodePorts
	// MaxRecords is how many records of one name and type all pods take.
	MaxRecords int32
	// Foreign is what the instance's Service sends queries to besides the instance's pods: "Pod old-1", "EndpointSlice by-hand".
	Foreign []string
	// Zones that the instance is to serve, in a stable order, without times.
	Zones   []v1beta1.ZoneReference
	Cluster *v1beta1.ClusterReference
	// KeyRotation is the state of the TSIG key of the instance's role; nil while unknown.
	KeyRotation *v1beta1.RNDCKeyRotationStatus
	// Configured says whether the instance can have pods at all, and if not, why. Terminal is true if only a change of the
	// specification can help.
	Configured Verdict
	Terminal   bool
	// Failure is a server's answer that only a person can change, such as a wrong key; the zero value if there is none.
	Failure Verdict
	// Timeout is how long the instance may make no progress before it has failed; InstanceTimeout if 0.
	Timeout time.Duration
}

// MaxInstanceZones bounds status.zones of an instance, for the size of the object; the count is always of all.
const MaxInstanceZones = 1000

// Instance computes the status of an instance: a condition for each pod, and Ready as their summary.
func Instance(prev v1beta1.Bind9InstanceStatus, f InstanceFacts, now time.Time) v1beta1.Bind9InstanceStatus {
	next := *prev.DeepCopy()
	dropClaims(&next.Conditions)
	next.ObservedGeneration, next.ObservedParentGeneration = f.Generation, f.ParentGeneration
	next.ServiceAddress, next.ServiceAddresses, next.ServiceExposed = f.Address, f.Addresses, f.Exposed
	next.ServiceNodePorts, next.MaxRecordsPerType = f.NodePorts, f.MaxRecords
	next.ClusterRef = f.Cluster
	if f.KeyRotation != nil {
		next.RNDCKeyRotation = f.KeyRotation
	}
	next.ZonesCount = int32(len(f.Zones)) //nolint:gosec // far below 2^31
	next.Zones = f.Zones[:min(len(f.Zones), MaxInstanceZones)]
	keepZoneTimes(next.Zones, prev.Zones, now)
	next.Replicas, next.ReadyReplicas = 0, 0
	children := make([]childCondition, len(f.Pods))
	for i, pod := range f.Pods {
		verdict := pod.verdict()
		children[i] = childCondition{PodCondition(i), verdict, pod.cause()}
		if pod.Pod != nil {
			next.Replicas++
		}
		if verdict.Holds() {
			next.ReadyReplicas++
		}
	}
	ready := summarizeChildren("pods", children)
	next.PendingCause = commonCause(children)
	if ready.Holds() && len(f.Foreign) > 0 {
		ready = False(ForeignPods, fmt.Sprintf("the Service also sends queries to others than the instance's pods: %s; delete them, or change their labels",
			JoinSome(f.Foreign, Few, ", ")))
	}
	if ready.Holds() {
		ready = unloadedVerdict(f.Pods, ready)
	}
	if !f.Configured.Holds() {
		ready, next.PendingCause = f.Configured, ""
	}
	next.Conditions = setChildren(next.Conditions, "Pod-", children, f.Generation, now)
	failed := terminalFailure{f.Terminal, f.Configured}
	if !f.Terminal && f.Failure.Status != "" {
		failed = terminalFailure{true, f.Failure}
	}
	next.LifecycleStatus = finishLifecycle(prev.LifecycleStatus, &next.Conditions, lifecycleFacts{
		ready: ready, failure: failed, generation: f.Generation, progress: next.ReadyReplicas > prev.ReadyReplicas,
		timeout: cmp.Or(f.Timeout, InstanceTimeout),
	}, now)
	return next
}

// unloadedVerdict names the zones of a user's configuration that the first pod that lacks any does not serve; it is ready if none does.
func unloadedVerdict(pods []PodFacts, ready Verdict) Verdict {
	for _, pod := range pods {
		if len(pod.Unloaded) > 0 {
			return False(ZonesNotLoaded, fmt.Sprintf("Pod %s does not serve zones of configMapRefs: %s; correct their files or statements; the log has more: kubectl logs %s -c %s",
				pod.Name, JoinSome(pod.Unloaded, Few, "; "), pod.Name, containerNamed))
		}
	}
	return ready
}

// NoCluster is about an instance whose cluster does not exist.
func NoCluster(name, namespace string) Verdict {
	return False(NotReady, fmt.Sprintf("no Bind9Cluster %s is in namespace %s", name, namespace))
}

// WaitingFor is about an instance or a cluster that needs the names of others that have yet to go.
func WaitingFor(predecessors string) Verdict { return False(NotReady, "waiting for "+predecessors) }

// KeysRefused is about an instance that a zone has found not to accept the TSIG keys. It quotes no zone of another namespace.
func KeysRefused(zone *v1beta1.DNSZone, namespace string) Verdict {
	message := "its servers do not accept the TSIG keys in its Secrets"
	if zone.Namespace == namespace {
		message = "zone " + zone.Spec.ZoneName + ": " + zone.Status.FailureMessage
	}
	return False(zone.Status.FailureReason, message)
}

// keepZoneTimes sets the time at which every zone came to the instance.
func keepZoneTimes(next, prev []v1beta1.ZoneReference, now time.Time) {
	type key struct{ namespace, name, zone string }
	old := make(map[key]*metav1.Time, len(prev))
	for _, z := range prev {
		old[key{z.Namespace, z.Name, z.ZoneName}] = z.LastReconciledAt
	}
	at := metav1.NewTime(now.Truncate(time.Second))
	for i, z := range next {
		if next[i].LastReconciledAt = old[key{z.Namespace, z.Name, z.ZoneName}]; next[i].LastReconciledAt == nil {
			next[i].LastReconciledAt = &at
		}
	}
}

// childCondition is the condition of one pod or instance in its parent's status.
type childCondition struct {
	condition string
	verdict   Verdict
	// cause is what keeps it from running, in the words of the scheduler or of the kubelet; empty if it runs or they say nothing.
	cause string
}

// commonCause is the cause that all children have that are not ready; empty if there is no such cause.
func commonCause(all []childCondition) (cause string) {
	for _, c := range all {
		switch {
		case c.verdict.Holds():
		case c.cause == "" || cause != "" && cause != c.cause:
			return ""
		default:
			cause = c.cause
		}
	}
	return cause
}

// summarizeChildren is the Ready condition over all children: "All 3 pods are ready", "2 of 3 pods are ready", "No pods are ready", the
// latter two with the cause, if there is one.
func summarizeChildren(children string, all []childCondition) Verdict {
	ready := 0
	reasons := map[string]int{}
	for _, c := range all {
		if c.verdict.Holds() {
			ready++
		} else {
			reasons[c.verdict.Reason]++
		}
	}
	switch {
	case len(all) == 0:
		return False(NoChildren, "No "+children+" are declared")
	case ready == len(all):
		return True(AllReady, fmt.Sprintf("All %d %s are ready", len(all), children))
	}
	are := fmt.Sprintf(" %s are ready", children)
	if cause := commonCause(all); cause != "" {
		are += ": " + cause
	}
	if ready > 0 {
		return False(PartiallyReady, fmt.Sprintf("%d of %d%s", ready, len(all), are))
	}
	reason := NotReady
	for _, common := range []string{PodsPending, PodsCrashing, BindcarUnreachable, UpstreamUnreachable, InstancesPending} {
		if reasons[common] == len(all) {
			reason = common
		}
	}
	return False(reason, "No"+are)
}

// setChildren writes the children's conditions and drops those of children that are gone: those with the given prefix and a
// number that is too high.
func setChildren(conditions []metav1.Condition, prefix string, all []childCondition, generation int64, now time.Time) []metav1.Condition {
	kept := conditions[:0:0]
	for _, c := range conditions {
		number, isChild := strings.CutPrefix(c.Type, prefix)
		if index, err := strconv.Atoi(number); !isChild || err != nil || index < len(all) {
			kept = append(kept, c)
		}
	}
	for _, c := range all {
		Set(&kept, c.condition, c.verdict, generation, now)
	}
	return kept
}

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

// InstanceFacts is what one pass found out about an instance.
type InstanceFacts struct {
	Generation int64
	// Pods are the expected pods by ordinal, those that do not exist yet included.
	Pods []PodFacts
	// Address of the instance's Service.
	Address string
	// Zones that the instance is to serve, in a stable order, without times.
	Zones   []v1beta1.ZoneReference
	Cluster *v1beta1.ClusterReference
	// KeyRotation tells of the TSIG key of the instance's role; nil while nothing is known of it.
	KeyRotation *v1beta1.RNDCKeyRotationStatus
	// Problem keeps the instance from having pods at all; True when there is none. Terminal tells that only a change of
	// the specification can help.
	Problem  Verdict
	Terminal bool
	// Failure is what the servers answer and only a person can change, such as a wrong key; the zero value when there is
	// none.
	Failure Verdict
	// Timeout is how long the instance may go without progress before it has failed; InstanceTimeout when 0.
	Timeout time.Duration
}

// MaxInstanceZones bounds status.zones of an instance, for the size of the object; the count is always of all.
const MaxInstanceZones = 1000

// MinimumOf is from how many pods on an instance counts as available while one of them is missing.
const MinimumOf = 3

// Instance is the status of an instance: a condition for each pod, and Ready, which sums them up.
func Instance(prev v1beta1.Bind9InstanceStatus, f InstanceFacts, now time.Time) v1beta1.Bind9InstanceStatus {
	next := *prev.DeepCopy()
	next.ObservedGeneration = f.Generation
	next.ServiceAddress = f.Address
	next.ClusterRef = f.Cluster
	if f.KeyRotation != nil {
		next.RNDCKeyRotation = f.KeyRotation
	}
	next.ZonesCount = int32(len(f.Zones)) //nolint:gosec // far below 2^31
	next.Zones = f.Zones[:min(len(f.Zones), MaxInstanceZones)]
	keepZoneTimes(next.Zones, prev.Zones, now)
	next.Replicas, next.ReadyReplicas = 0, 0
	children := make([]child, len(f.Pods))
	for i, pod := range f.Pods {
		verdict := pod.verdict()
		children[i] = child{PodCondition(i), verdict}
		if pod.Pod != nil {
			next.Replicas++
		}
		if verdict.Holds() {
			next.ReadyReplicas++
		}
	}
	ready := sumUp("pods", children)
	if n := len(children); ready.Reason == PartiallyReady && n >= MinimumOf && int(next.ReadyReplicas) == n-1 {
		ready.Reason = MinimumReplicasAvailable
	}
	if !f.Problem.Holds() {
		ready = f.Problem
	}
	next.Conditions = setChildren(next.Conditions, "Pod-", children, f.Generation, now)
	failed := failure{f.Terminal, f.Problem}
	if !f.Terminal && f.Failure.Status != "" {
		failed = failure{true, f.Failure}
	}
	next.LifecycleStatus = finish(prev.LifecycleStatus, &next.Conditions, outcome{
		ready: ready, failure: failed, generation: f.Generation, progress: next.ReadyReplicas > prev.ReadyReplicas,
		timeout: cmp.Or(f.Timeout, InstanceTimeout),
	}, now)
	return next
}

// keepZoneTimes gives every zone the time at which it came to the instance.
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

// child is the condition of one part of a whole.
type child struct {
	condition string
	verdict   Verdict
}

// sumUp is the Ready condition over all children: "All 3 pods are ready", "2 of 3 pods are ready", "No pods are ready".
func sumUp(children string, all []child) Verdict {
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
		return No(NoChildren, "No "+children+" are declared")
	case ready == len(all):
		return Yes(AllReady, fmt.Sprintf("All %d %s are ready", len(all), children))
	case ready > 0:
		return No(PartiallyReady, fmt.Sprintf("%d of %d %s are ready", ready, len(all), children))
	}
	reason := NotReady
	for _, common := range []string{PodsPending, PodsCrashing, BindcarUnreachable, UpstreamUnreachable, InstancesPending} {
		if reasons[common] == len(all) {
			reason = common
		}
	}
	return No(reason, "No "+children+" are ready")
}

// setChildren writes the children's conditions and drops those of children that are gone: of the given prefix, which a
// number follows.
func setChildren(conditions []metav1.Condition, prefix string, all []child, generation int64, now time.Time) []metav1.Condition {
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

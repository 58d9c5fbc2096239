package status

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// InstanceDeadline is how long an instance may take to become ready before a person is called.
const InstanceDeadline = 15 * time.Minute

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
}

// MaxInstanceZones bounds status.zones of an instance, for the size of the object; the count is always of all.
const MaxInstanceZones = 1000

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
	if !f.Problem.Holds() {
		ready = f.Problem
	}
	next.Conditions = setChildren(next.Conditions, "Pod-", children, f.Generation, now)
	next.LifecycleStatus = finish(&next.Conditions, ready, failure{f.Terminal, f.Problem}, f.Generation, now)
	return next
}

// PodFacts is what is known about one expected pod.
type PodFacts struct {
	Name string
	// Pod is nil while it does not exist.
	Pod *corev1.Pod
	// Problem is what the pod's sidecar answered, or what its zones lack; True when there is no such problem. The
	// message goes on after the pod's name.
	Problem Verdict
}

func (f PodFacts) verdict() Verdict {
	say := func(make func(string, string) Verdict, reason, message string) Verdict {
		return make(reason, "Pod "+f.Name+" "+message)
	}
	if f.Pod == nil {
		return say(No, PodsPending, "does not exist yet")
	}
	if crash := crashing(f.Pod); crash != "" {
		return say(No, PodsCrashing, "is crashing: "+crash)
	}
	ready := PodReady(f.Pod)
	switch {
	case !f.Problem.Holds() && (!ready || f.Problem.Reason != ReasonProgressing):
		return say(No, f.Problem.Reason, f.Problem.Message)
	case f.Pod.Status.Phase != corev1.PodRunning:
		return say(No, PodsPending, "is pending"+because(pendingReason(f.Pod)))
	case !ready:
		return say(No, ReasonProgressing, "is starting")
	}
	return say(Yes, ReasonReady, "is ready")
}

// PodReady tells whether the pod's Ready condition holds, its readiness gates included.
func PodReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

// crashing names the container that fails over and over, and how.
func crashing(pod *corev1.Pod) string {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range statuses {
			if w := c.State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
				return fmt.Sprintf("container %s ended %d times%s", c.Name, c.RestartCount, because(lastWords(c)))
			}
		}
	}
	return ""
}

func lastWords(c corev1.ContainerStatus) string {
	t := c.LastTerminationState.Terminated
	if t == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%s (exit code %d) %s", t.Reason, t.ExitCode, complaints(t.Message)))
}

// complaints are the lines of a log that tell of errors, the last line when none does.
func complaints(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	var errs []string
	for _, line := range lines {
		for _, severity := range []string{" error: ", " critical: "} {
			if _, text, ok := strings.Cut(line, severity); ok {
				errs = append(errs, text)
			}
		}
	}
	if len(errs) == 0 {
		return lines[len(lines)-1]
	}
	return strings.Join(errs, "; ")
}

// pendingReason is the scheduler's or the kubelet's explanation of a pod that does not run.
func pendingReason(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range statuses {
			if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
				return fmt.Sprintf("container %s: %s %s", c.Name, w.Reason, w.Message)
			}
		}
	}
	return ""
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + strings.TrimSpace(reason)
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
	for _, common := range []string{PodsPending, PodsCrashing, BindcarUnreachable, InstancesPending} {
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

// failure is what a person has to act on.
type failure struct {
	terminal bool
	verdict  Verdict
}

// finish writes Ready, last of all, and derives the phase from it. What is not ready for too long has failed.
func finish(conditions *[]metav1.Condition, ready Verdict, f failure, generation int64, now time.Time) v1beta1.LifecycleStatus {
	if before := meta.FindStatusCondition(*conditions, Ready); before != nil && before.Status == metav1.ConditionFalse && !ready.Holds() &&
		ready.Reason != NoChildren && !f.terminal && now.Sub(before.LastTransitionTime.Time) >= InstanceDeadline {
		ready = No(ProgressDeadlineExceeded, fmt.Sprintf("%s after %s", ready.Message, InstanceDeadline))
		f = failure{true, ready}
	}
	Set(conditions, Ready, ready, generation, now)
	switch {
	case f.terminal:
		return v1beta1.LifecycleStatus{Phase: v1beta1.PhaseFailed, FailureReason: f.verdict.Reason, FailureMessage: f.verdict.Message}
	case ready.Holds():
		return v1beta1.LifecycleStatus{Ready: true, Phase: v1beta1.PhaseReady}
	}
	return v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating}
}

// UntilDeadline is how long a status that is not ready may still stay so before it counts as failed; 0 when it is ready
// or has failed.
func UntilDeadline(conditions []metav1.Condition, now time.Time) time.Duration {
	ready := meta.FindStatusCondition(conditions, Ready)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason == ProgressDeadlineExceeded || ready.Reason == NoChildren {
		return 0
	}
	return max(time.Second, InstanceDeadline-now.Sub(ready.LastTransitionTime.Time))
}

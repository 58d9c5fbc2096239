package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// ClusterFacts is what one pass found about a cluster.
type ClusterFacts struct {
	Generation int64
	// Instances are the declared ones, primaries first and each role by its index, and then those that others made for the
	// cluster.
	Instances []ClusterInstance
	// Leaving are the names of instances that are not the cluster's any more and of which there is still something.
	Leaving []string
	// Configured says whether the cluster can have instances at all, and if not, why. Terminal is true if only a change of
	// the specification or of a Secret can help.
	Configured Verdict
	Terminal   bool
	// Timeout is how long the cluster may make no progress before it has failed; InstanceTimeout if 0.
	Timeout time.Duration
}

// ClusterInstance is one instance of a cluster.
type ClusterInstance struct {
	Name string
	// Instance is nil while it does not exist.
	Instance *v1beta1.Bind9Instance
}

// Cluster computes the status of a cluster: a condition for each instance, and Ready as their summary.
func Cluster(prev v1beta1.Bind9ClusterStatus, f ClusterFacts, now time.Time) v1beta1.Bind9ClusterStatus {
	next := *prev.DeepCopy()
	dropClaims(&next.Conditions)
	next.ObservedGeneration = f.Generation
	next.InstanceCount, next.ReadyInstances, next.Instances = 0, 0, nil
	children := make([]childCondition, len(f.Instances))
	failed := terminalFailure{f.Terminal, f.Configured}
	for i, instance := range f.Instances {
		verdict := instance.verdict()
		children[i] = childCondition{instanceCondition(i), verdict, instance.cause()}
		if instance.Instance == nil {
			continue
		}
		next.InstanceCount++
		next.Instances = append(next.Instances, instance.Name)
		if verdict.Holds() {
			next.ReadyInstances++
		}
		if s := instance.Instance.Status; s.FailureReason != "" && !failed.terminal {
			failed = terminalFailure{true, False(s.FailureReason, "Instance "+instance.Name+": "+s.FailureMessage)}
		}
	}
	ready := f.Configured
	if ready.Holds() {
		ready = scalingVerdict(prev, summarizeChildren("instances", children), f)
	}
	next.Conditions = setChildren(next.Conditions, "Bind9Instance-", children, f.Generation, now)
	next.LifecycleStatus = finishLifecycle(prev.LifecycleStatus, &next.Conditions, lifecycleFacts{
		ready: ready, failure: failed, generation: f.Generation, progress: next.ReadyInstances > prev.ReadyInstances,
		timeout: cmp.Or(f.Timeout, InstanceTimeout),
	}, now)
	return next
}

// scalingVerdict adds to the summary of a cluster's instances that some are on their way: up, from the moment at which one is
// missing until all are ready, or down, as long as there is something left of those that are leaving.
func scalingVerdict(prev v1beta1.Bind9ClusterStatus, ready Verdict, f ClusterFacts) Verdict {
	was := ptr.Deref(meta.FindStatusCondition(prev.Conditions, Ready), metav1.Condition{})
	// One that was made since the last status counts as missing, too: nobody may have been in time to see that it was.
	grows := slices.ContainsFunc(f.Instances, func(i ClusterInstance) bool {
		return i.Instance == nil || was.Type != "" && !slices.Contains(prev.Instances, i.Name)
	})
	isUnderWay := slices.Contains([]string{PartiallyReady, NotReady, PodsPending, InstancesPending}, ready.Reason)
	goesOn := func(reason string) bool { return was.Status == metav1.ConditionFalse && was.Reason == reason }
	switch {
	case isUnderWay && (grows && prev.InstanceCount == 0 || goesOn(InstancesCreated)):
		ready.Reason = InstancesCreated
	case isUnderWay && (grows || goesOn(InstancesScaling)), ready.Holds() && len(f.Leaving) > 0:
		ready.Reason = InstancesScaling
	}
	if len(f.Leaving) > 0 {
		ready.Message += "; still being removed: " + JoinSome(f.Leaving, Few, ", ")
	}
	return ready
}

// HeldBy is an instance that is leaving and has the finalizer of another operator.
func HeldBy(instance, finalizer string) string {
	return fmt.Sprintf("%s, which waits for another operator to remove its finalizer %s", instance, finalizer)
}

func (i ClusterInstance) verdict() Verdict {
	if i.Instance == nil {
		return False(InstancesPending, "Instance "+i.Name+" does not exist yet")
	}
	s := i.Instance.Status
	expected := max(s.Replicas, int32(podConditions(s.Conditions))) //nolint:gosec // at most 100
	pods := fmt.Sprintf("(%d/%d pods)", s.ReadyReplicas, expected)
	ready := meta.FindStatusCondition(s.Conditions, Ready)
	switch {
	case ready == nil:
		return False(InstancesPending, "Instance "+i.Name+" has no status yet")
	case ready.Status == metav1.ConditionTrue:
		return True(ReasonReady, "Instance "+i.Name+" is ready "+pods)
	case s.ReadyReplicas > 0 && s.ReadyReplicas < expected:
		return False(PartiallyReady, "Instance "+i.Name+" is progressing "+pods)
	}
	return False(ready.Reason, "Instance "+i.Name+" is not ready "+pods+": "+ready.Message)
}

// cause is what keeps the instance's pods from running, if its status says that.
func (i ClusterInstance) cause() string {
	if i.Instance == nil {
		return ""
	}
	return i.Instance.Status.PendingCause
}

// podConditions counts the expected pods of an instance.
func podConditions(conditions []metav1.Condition) int {
	n := 0
	for meta.FindStatusCondition(conditions, PodCondition(n)) != nil {
		n++
	}
	return n
}

// GlobalCluster computes the status of a cluster-scoped cluster: one Ready condition sums up its instances, and names those that are not
// ready.
func GlobalCluster(prev v1beta1.Bind9ClusterStatus, f ClusterFacts, now time.Time) v1beta1.Bind9ClusterStatus {
	next := Cluster(prev, f, now)
	ready := meta.FindStatusCondition(next.Conditions, Ready)
	verdict := Verdict{ready.Status, ready.Reason, ready.Message}
	switch ready.Reason {
	case PartiallyReady, NotReady, PodsPending, InstancesCreated, InstancesScaling, InstancesPending:
		verdict.Reason = ClustersProgressing
		if unready := unreadyChildren(next.Conditions); len(unready) > 0 {
			verdict.Message += ": " + JoinSome(unready, Few, "; ")
		}
	}
	if verdict.Holds() {
		verdict.Reason = ClustersReady
	}
	next.Conditions = next.DeepCopy().Conditions
	next.Conditions = setChildren(next.Conditions, "Bind9Instance-", nil, f.Generation, now)
	Set(&next.Conditions, Ready, verdict, f.Generation, now)
	return next
}

// unreadyChildren lists the messages of instances that are not ready.
func unreadyChildren(conditions []metav1.Condition) (messages []string) {
	for _, c := range conditions {
		if c.Type != Ready && c.Status != metav1.ConditionTrue {
			messages = append(messages, c.Message)
		}
	}
	return messages
}

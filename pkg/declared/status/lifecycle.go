package status

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// Default deadlines after which an object without progress has failed.
const (
	// InstanceTimeout is for an instance or a cluster that makes no progress towards being ready.
	InstanceTimeout = 15 * time.Minute
	// KeyTimeout is for an instance that waits for a Secret.
	KeyTimeout = 5 * time.Minute
	// ZoneTimeout is for a zone that one of its instances does not serve.
	ZoneTimeout = 30 * time.Minute
)

// terminalFailure is a failure that needs a person, if terminal is true.
type terminalFailure struct {
	terminal bool
	verdict  Verdict
}

// lifecycleFacts is the summary of a pass.
type lifecycleFacts struct {
	ready      Verdict
	failure    terminalFailure
	generation int64
	// progress is true if more is ready than before.
	progress bool
	timeout  time.Duration
	// copied is true if others copy a failure's reason and never take it back, as Cluster API does. A deadline that was missed is none
	// then: it ends by itself.
	copied bool
}

// finishLifecycle sets Ready and derives the phase from it. An object that is not ready and makes no progress for too
// long has failed, until it is ready or its specification changes.
func finishLifecycle(prev v1beta1.LifecycleStatus, conditions *[]metav1.Condition, o lifecycleFacts, now time.Time) v1beta1.LifecycleStatus {
	next := v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating}
	missed, since := false, phaseSince(prev, meta.FindStatusCondition(*conditions, Ready), o, now)
	if !o.failure.terminal && !o.ready.Holds() && !isUntimed(o.ready.Reason) && now.Sub(since.Time) >= o.timeout {
		o.ready = False(ProgressDeadlineExceeded, fmt.Sprintf("%s after %s", o.ready.Message, o.timeout))
		o.failure, missed = terminalFailure{true, o.ready}, true
	}
	Set(conditions, Ready, o.ready, o.generation, now)
	setStalled(conditions, o.failure.terminal, o.failure.verdict, o.generation, now)
	switch {
	case o.failure.terminal && missed && o.copied:
		next.Phase = v1beta1.PhaseFailed
	case o.failure.terminal:
		next.Phase, next.FailureReason, next.FailureMessage = v1beta1.PhaseFailed, o.failure.verdict.Reason, o.failure.verdict.Message
	case o.ready.Holds():
		next.Ready, next.Phase = true, v1beta1.PhaseReady
	}
	next.PhaseSince = since
	return next
}

// isUntimed is true for reasons for which an object may be not ready for any time: others have to act first.
func isUntimed(reason string) bool { return reason == NoChildren || reason == WaitingForEndpoint }

// phaseSince is since when the object is ready, or has made no progress towards it. A status from before this was recorded has the
// condition's transition time instead.
func phaseSince(prev v1beta1.LifecycleStatus, ready *metav1.Condition, o lifecycleFacts, now time.Time) *metav1.Time {
	switch {
	case ready == nil, o.ready.Holds() != (ready.Status == metav1.ConditionTrue):
		return wholeSeconds(now)
	case !o.ready.Holds() && (o.progress || ready.ObservedGeneration != o.generation || isUntimed(ready.Reason) && !isUntimed(o.ready.Reason)):
		return wholeSeconds(now)
	case prev.PhaseSince == nil:
		return &ready.LastTransitionTime
	}
	return prev.PhaseSince
}

func wholeSeconds(now time.Time) *metav1.Time { return new(metav1.NewTime(now.Truncate(time.Second))) }

// Deleting is the lifecycle of an object that is being deleted.
func Deleting(prev v1beta1.LifecycleStatus, now time.Time) v1beta1.LifecycleStatus {
	if prev.Phase == v1beta1.PhaseDeleting {
		return prev
	}
	return v1beta1.LifecycleStatus{Phase: v1beta1.PhaseDeleting, PhaseSince: wholeSeconds(now)}
}

// UntilDeadline is how much longer an object may be not ready before it has failed; 0 if it is ready or has failed.
func UntilDeadline(life v1beta1.LifecycleStatus, conditions []metav1.Condition, timeout time.Duration, now time.Time) time.Duration {
	ready := meta.FindStatusCondition(conditions, Ready)
	if life.Phase != v1beta1.PhaseCreating || life.PhaseSince == nil || ready == nil || isUntimed(ready.Reason) {
		return 0
	}
	return max(time.Second, timeout-now.Sub(life.PhaseSince.Time))
}

// Stalled is True while a person has to act, and else not there. It is one of the conditions that tools know of every kind (kstatus): with
// it they report an object as failed, instead of waiting for it.
const Stalled = "Stalled"

// setStalled says whether a person has to act, and why.
func setStalled(conditions *[]metav1.Condition, failed bool, why Verdict, generation int64, now time.Time) {
	setWhile(failed, conditions, Stalled, True(why.Reason, why.Message), generation, now)
}

// setWhile sets a condition that is there only while it holds.
func setWhile(holds bool, conditions *[]metav1.Condition, kind string, verdict Verdict, generation int64, now time.Time) {
	if holds {
		Set(conditions, kind, verdict, generation, now)
	} else {
		meta.RemoveStatusCondition(conditions, kind)
	}
}

// Earlier takes a zero time for none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// passing are reasons for which a record, an endpoint or a provider is not ready and that pass by themselves, or with a zone whose own
// status has the cause.
var passing = map[string]bool{Pending: true, ZoneNotConfigured: true, NoPrimaryInstances: true, PrimaryFailed: true, Paused: true, ReasonHeld: true}

// FailureOf is the reason for which a stored object has failed, as its status says: one that a person has to end. It is empty if the
// object has not failed, if its status is about another generation than the present one, and if it is being deleted.
func FailureOf(o metav1.Object) string {
	if o.GetDeletionTimestamp() != nil {
		return ""
	}
	switch o := o.(type) {
	case *v1beta1.DNSZone:
		return present(o, o.Status.ObservedGeneration, o.Status.FailureReason)
	case *v1beta1.Bind9Instance:
		return present(o, o.Status.ObservedGeneration, o.Status.FailureReason)
	case *v1beta1.Bind9Cluster:
		return present(o, o.Status.ObservedGeneration, o.Status.FailureReason)
	case *v1beta1.Bind9GlobalCluster:
		return present(o, o.Status.ObservedGeneration, o.Status.FailureReason)
	case *v1beta1.ClusterBind9Provider:
		return present(o, o.Status.ObservedGeneration, o.Status.FailureReason)
	case *v1beta1.DNSProvider:
		return failedCondition(o.Status.Conditions, o.Generation, Ready)
	case *v1alpha1.DNSEndpoint:
		return failedCondition(o.Status.Conditions, o.Generation, Accepted, Programmed)
	case v1beta1.Record:
		conditions, generation := o.GetRecordStatus().Conditions, o.GetGeneration()
		if ready := meta.FindStatusCondition(conditions, Ready); ready != nil && ready.Reason == NotSelected {
			return failedCondition(conditions, generation, Ready)
		}
		return failedCondition(conditions, generation, Accepted, Programmed)
	}
	return ""
}

// present drops a reason that is not about the present generation of an object.
func present(o metav1.Object, observed int64, reason string) string {
	if observed != o.GetGeneration() {
		return ""
	}
	return reason
}

// failedCondition is the reason of the first of some conditions that is False, unless that passes by itself.
func failedCondition(conditions []metav1.Condition, generation int64, kinds ...string) string {
	for _, kind := range kinds {
		c := meta.FindStatusCondition(conditions, kind)
		if c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == generation && !passing[c.Reason] {
			return c.Reason
		}
	}
	return ""
}

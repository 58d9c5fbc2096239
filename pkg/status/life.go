package status

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// Default times that a phase may last before a person is called.
const (
	// InstanceTimeout is for an instance or a cluster that does not come nearer to being ready.
	InstanceTimeout = 15 * time.Minute
	// KeyTimeout is for one that waits for a Secret.
	KeyTimeout = 5 * time.Minute
	// ZoneTimeout is for a zone that an instance of its does not serve.
	ZoneTimeout = 30 * time.Minute
)

// failure is what a person has to act on.
type failure struct {
	terminal bool
	verdict  Verdict
}

// outcome is what a pass found, summed up.
type outcome struct {
	ready      Verdict
	failure    failure
	generation int64
	// progress tells that more is ready than before.
	progress bool
	timeout  time.Duration
}

// finish writes Ready, last of all, and derives the phase from it. What is not ready and makes no progress for too long
// has failed, until it is ready or its specification changes.
func finish(prev v1beta1.LifecycleStatus, conditions *[]metav1.Condition, o outcome, now time.Time) v1beta1.LifecycleStatus {
	next := v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating}
	since := waitingSince(prev, meta.FindStatusCondition(*conditions, Ready), o, now)
	if !o.failure.terminal && !o.ready.Holds() && o.ready.Reason != NoChildren && now.Sub(since.Time) >= o.timeout {
		o.ready = No(ProgressDeadlineExceeded, fmt.Sprintf("%s after %s", o.ready.Message, o.timeout))
		o.failure = failure{true, o.ready}
	}
	Set(conditions, Ready, o.ready, o.generation, now)
	switch {
	case o.failure.terminal:
		next.Phase, next.FailureReason, next.FailureMessage = v1beta1.PhaseFailed, o.failure.verdict.Reason, o.failure.verdict.Message
	case o.ready.Holds():
		next.Ready, next.Phase = true, v1beta1.PhaseReady
	}
	next.PhaseSince = since
	return next
}

// waitingSince is since when the object is ready, or since when it has made no progress towards it. In a status of before
// that was noted, the condition's time stands for it.
func waitingSince(prev v1beta1.LifecycleStatus, ready *metav1.Condition, o outcome, now time.Time) *metav1.Time {
	switch {
	case ready == nil, o.ready.Holds() != (ready.Status == metav1.ConditionTrue):
		return moment(now)
	case !o.ready.Holds() && (o.progress || ready.ObservedGeneration != o.generation || ready.Reason == NoChildren && o.ready.Reason != NoChildren):
		return moment(now)
	case prev.PhaseSince == nil:
		return &ready.LastTransitionTime
	}
	return prev.PhaseSince
}

func moment(now time.Time) *metav1.Time {
	at := metav1.NewTime(now.Truncate(time.Second))
	return &at
}

// Deleting is the phase of an object that is on its way out, with its parts.
func Deleting(prev v1beta1.LifecycleStatus, now time.Time) v1beta1.LifecycleStatus {
	if prev.Phase == v1beta1.PhaseDeleting {
		return prev
	}
	return v1beta1.LifecycleStatus{Phase: v1beta1.PhaseDeleting, PhaseSince: moment(now)}
}

// UntilDeadline is how long an object that is not ready may still stay so before it counts as failed; 0 when it is ready
// or has failed.
func UntilDeadline(life v1beta1.LifecycleStatus, conditions []metav1.Condition, timeout time.Duration, now time.Time) time.Duration {
	ready := meta.FindStatusCondition(conditions, Ready)
	if life.Phase != v1beta1.PhaseCreating || life.PhaseSince == nil || ready == nil || ready.Reason == NoChildren {
		return 0
	}
	return max(time.Second, timeout-now.Sub(life.PhaseSince.Time))
}

package instance

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// statusWriter writes the status of instances, each not too often.
type statusWriter struct {
	client      client.Client
	transitions *apply.Transitions
	limiter     apply.StatusLimiter
}

// update writes the status when it has changed, and returns when to reconcile again: at requeue at the latest, unless that
// is 0.
func (w *statusWriter) update(ctx context.Context, instance *v1beta1.Bind9Instance, facts status.InstanceFacts, requeue time.Duration, now time.Time) (ctrl.Result, error) {
	next := status.Instance(instance.Status, facts, now)
	requeue = inventory.Sooner(requeue, status.UntilDeadline(next.LifecycleStatus, next.Conditions, facts.Timeout, now))
	requeue = inventory.Sooner(requeue, inventory.CheckInterval(ctx, w.client, len(facts.Zones)))
	if equality.Semantic.DeepEqual(instance.Status, next) {
		return ctrl.Result{RequeueAfter: requeue}, nil
	}
	if wait := w.limiter.Delay(instance.UID, now, writeInterval(instance.Status, next)); wait > 0 {
		return ctrl.Result{RequeueAfter: min(requeue, wait)}, nil
	}
	if err := apply.Status(ctx, w.client, inventory.InstanceKind, instance, &next); err != nil {
		return ctrl.Result{}, err
	}
	w.recordConfiguration(instance, next)
	w.transitions.Record(instance, summaryOf(instance.Status), summaryOf(next))
	return ctrl.Result{RequeueAfter: requeue}, nil
}

// summaryOf leaves out an invalid configuration, which recordConfiguration reports.
func summaryOf(s v1beta1.Bind9InstanceStatus) apply.Summary {
	summary := apply.Summary{Conditions: s.Conditions}
	if s.FailureReason != status.ConfigurationInvalid {
		summary.FailureReason, summary.FailureMessage = s.FailureReason, s.FailureMessage
	}
	return summary
}

// writeInterval is how long after the last write the next status may be written. The list of zones alone can wait, the longer the more
// zones there are.
func writeInterval(last, next v1beta1.Bind9InstanceStatus) time.Duration {
	last.Zones, last.ZonesCount = next.Zones, next.ZonesCount
	if !equality.Semantic.DeepEqual(last, next) {
		return apply.StatusInterval
	}
	return min(max(apply.StatusInterval, time.Duration(len(next.Zones))*apply.ListInterval/status.MaxInstanceZones), apply.ListInterval)
}

// recordConfiguration makes events of a configuration that cannot be used, and of its repair.
func (w *statusWriter) recordConfiguration(instance *v1beta1.Bind9Instance, next v1beta1.Bind9InstanceStatus) {
	invalid := func(s v1beta1.Bind9InstanceStatus) bool { return s.FailureReason == status.ConfigurationInvalid }
	switch was, is := invalid(instance.Status), invalid(next); {
	case is && (!was || next.FailureMessage != instance.Status.FailureMessage):
		w.transitions.Emit(instance, corev1.EventTypeWarning, status.ConfigurationInvalid, next.FailureMessage)
	case was && !is:
		w.transitions.Emit(instance, corev1.EventTypeNormal, status.ConfigurationValid, "the configuration can be used now")
	}
}

// writeDeleting writes that an instance that still exists is being deleted.
func (w *statusWriter) writeDeleting(ctx context.Context, instance *v1beta1.Bind9Instance, now time.Time) error {
	if instance.UID == "" {
		return nil
	}
	next := *instance.Status.DeepCopy()
	next.LifecycleStatus = status.Deleting(next.LifecycleStatus, now)
	if equality.Semantic.DeepEqual(instance.Status, next) {
		return nil
	}
	if err := apply.Status(ctx, w.client, inventory.InstanceKind, instance, &next); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of an instance that is being deleted: %w", err)
	}
	return nil
}

package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/status"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// report writes the status when it has changed, and says when to look again.
func (p *instancePass) report(ctx context.Context) (ctrl.Result, error) {
	now := p.now()
	next := status.Instance(p.instance.Status, p.facts, now)
	again := status.UntilDeadline(next.LifecycleStatus, next.Conditions, p.facts.Timeout, now)
	if p.again > 0 && (again == 0 || p.again < again) {
		again = p.again
	}
	if again == 0 || again > certificatePace {
		again = certificatePace
	}
	if equality.Semantic.DeepEqual(p.instance.Status, next) {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	if wait := p.pace.wait(p.instance.UID, now, pauseBefore(p.instance.Status, next)); wait > 0 {
		return ctrl.Result{RequeueAfter: min(again, wait)}, nil
	}
	if err := syncevent.ApplyStatus(ctx, p.client, instanceKind, p.instance, &next); err != nil {
		return ctrl.Result{}, err
	}
	p.noteConfiguration(next)
	return ctrl.Result{RequeueAfter: again}, nil
}

// pauseBefore is how long a write of the next status has to be after the last one. The list of zones alone can wait, the
// longer the more zones there are.
func pauseBefore(last, next v1beta1.Bind9InstanceStatus) time.Duration {
	last.Zones, last.ZonesCount = next.Zones, next.ZonesCount
	if !equality.Semantic.DeepEqual(last, next) {
		return statusPause
	}
	return min(max(statusPause, time.Duration(len(next.Zones))*listPause/status.MaxInstanceZones), listPause)
}

// noteConfiguration tells by events that a configuration cannot be used, and that it was repaired.
func (p *instancePass) noteConfiguration(next v1beta1.Bind9InstanceStatus) {
	invalid := func(s v1beta1.Bind9InstanceStatus) bool { return s.FailureReason == status.ConfigurationInvalid }
	switch was, is := invalid(p.instance.Status), invalid(next); {
	case is && (!was || next.FailureMessage != p.instance.Status.FailureMessage):
		p.events.Eventf(p.instance, nil, corev1.EventTypeWarning, status.ConfigurationInvalid, "Reconcile", "%s", next.FailureMessage)
	case was && !is:
		p.events.Eventf(p.instance, nil, corev1.EventTypeNormal, status.ConfigurationValid, "Reconcile", "the configuration can be used now")
	}
}

// sayDeleting tells that an instance that still exists is on its way out.
func (r *instanceReconciler) sayDeleting(ctx context.Context, instance *v1beta1.Bind9Instance) error {
	if instance.UID == "" {
		return nil
	}
	next := *instance.Status.DeepCopy()
	next.LifecycleStatus = status.Deleting(next.LifecycleStatus, r.now())
	if equality.Semantic.DeepEqual(instance.Status, next) {
		return nil
	}
	if err := syncevent.ApplyStatus(ctx, r.client, instanceKind, instance, &next); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of an instance that is being deleted: %w", err)
	}
	return nil
}

// wasReady tells whether the last status that was written has the pod as ready.
func (p *instancePass) wasReady(ordinal int) bool {
	return meta.IsStatusConditionTrue(p.instance.Status.Conditions, status.PodCondition(ordinal))
}

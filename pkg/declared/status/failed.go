package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

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

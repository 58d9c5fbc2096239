package named

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// DisruptionBudget lets drains of nodes take away one server at a time of those that share a role in a cluster, or of a
// standalone instance's pods. All instances of the role apply the same object, which belongs to owner, the cluster. A
// pod that is not ready may always go. A role's only server may too: a drain would never end otherwise.
func (w Workload) DisruptionBudget(owner *metav1ac.OwnerReferenceApplyConfiguration) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	name, labels := w.Instance.Name, w.peers()
	labels[LabelManagedBy] = Manager
	if cluster := w.Instance.Spec.ClusterRef; cluster != "" {
		name = cluster + "-" + string(w.role())
	} else {
		owner = w.owner()
	}
	return policyv1ac.PodDisruptionBudget(name, w.Instance.Namespace).WithLabels(labels).WithOwnerReferences(owner).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(w.peers())))
}

// peers are the labels of the servers that can stand in for one another: those of a cluster that have the same role, or
// a standalone instance's pods.
func (w Workload) peers() map[string]string {
	if cluster := w.Instance.Spec.ClusterRef; cluster != "" {
		return map[string]string{LabelName: AppName, v1beta1.ClusterLabel: cluster, v1beta1.RoleLabel: string(w.role())}
	}
	return SelectorLabels(w.Instance.Name)
}

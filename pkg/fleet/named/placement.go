package named

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// defaultSpread prefers to keep the servers of a cluster that have the same role apart.
var defaultSpread = []v1beta1.SpreadRule{{TopologyKey: corev1.LabelHostname}, {TopologyKey: corev1.LabelTopologyZone}}

// spreadConstraints returns the instance's rules, or its role's; the default if neither has any. An empty list is one.
func (w Workload) spreadConstraints() []*corev1ac.TopologySpreadConstraintApplyConfiguration {
	placement := ptr.Deref(firstNonNil(w.Instance.Spec.Placement, w.roleConfig().Placement), v1beta1.PlacementConfig{})
	rules := placement.Spread
	if rules == nil {
		rules = defaultSpread
	}
	constraints := make([]*corev1ac.TopologySpreadConstraintApplyConfiguration, len(rules))
	for n, rule := range rules {
		c := corev1ac.TopologySpreadConstraint().WithTopologyKey(rule.TopologyKey).
			WithMaxSkew(max(rule.MaxSkew, 1)).
			WithWhenUnsatisfiable(cmp.Or(rule.WhenUnsatisfiable, corev1.ScheduleAnyway)).
			WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(w.spreadLabels(rule.Scope)))
		c.MinDomains, c.NodeAffinityPolicy, c.NodeTaintsPolicy = rule.MinDomains, rule.NodeAffinityPolicy, rule.NodeTaintsPolicy
		constraints[n] = c
	}
	return constraints
}

// spreadLabels returns the labels of the pods that a rule spreads.
func (w Workload) spreadLabels(scope v1beta1.SpreadScope) map[string]string {
	cluster := w.Instance.Spec.ClusterRef
	switch {
	case scope == v1beta1.SpreadInstance:
		return SelectorLabels(w.Instance.Name)
	case scope == v1beta1.SpreadCluster && cluster != "":
		return map[string]string{LabelName: AppName, LabelManagedBy: Manager, v1beta1.ClusterLabel: cluster}
	}
	return w.peerLabels()
}

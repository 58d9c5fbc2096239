package named

import (
	"cmp"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// defaultSpread prefers to keep the servers of a cluster that have the same role apart.
var defaultSpread = []v1beta1.SpreadRule{{TopologyKey: corev1.LabelHostname}, {TopologyKey: corev1.LabelTopologyZone}}

// serverConfigs are the settings of the cluster, of the instance's role in it, and of the instance: of each, the last one that is set counts.
func (w Workload) serverConfigs() []v1beta1.ServerConfig {
	return []v1beta1.ServerConfig{w.Cluster.ServerConfig, w.roleConfig().ServerConfig, w.Instance.Spec.ServerConfig}
}

// placement merges field by field. An empty list or map that is set counts.
func (w Workload) placement() (merged v1beta1.PlacementConfig) {
	for _, c := range w.serverConfigs() {
		p := ptr.Deref(c.Placement, v1beta1.PlacementConfig{})
		if p.Spread != nil {
			merged.Spread = p.Spread
		}
		if p.NodeSelector != nil {
			merged.NodeSelector = p.NodeSelector
		}
		if p.Tolerations != nil {
			merged.Tolerations = p.Tolerations
		}
		merged.Affinity = cmp.Or(p.Affinity, merged.Affinity)
		merged.PriorityClassName = cmp.Or(p.PriorityClassName, merged.PriorityClassName)
	}
	return merged
}

// place has the scheduler choose the pod's node.
func (w Workload) place(pod *corev1ac.PodSpecApplyConfiguration) error {
	placement := w.placement()
	chosen, err := toApply[corev1ac.PodSpecApplyConfiguration](corev1.PodSpec{Affinity: placement.Affinity, Tolerations: placement.Tolerations})
	if err != nil {
		return fmt.Errorf("placement: %w", err)
	}
	pod.Affinity, pod.Tolerations, pod.PriorityClassName = chosen.Affinity, chosen.Tolerations, placement.PriorityClassName
	pod.WithNodeSelector(placement.NodeSelector).WithTopologySpreadConstraints(w.spreadConstraints(placement.Spread)...)
	return nil
}

// labelsOfPods returns those of the instance's pods. Its own count for more than those that are added.
func (w Workload) labelsOfPods() map[string]string {
	labels := map[string]string{}
	for _, c := range w.serverConfigs() {
		maps.Copy(labels, c.PodLabels)
	}
	maps.Copy(labels, w.Labels())
	return labels
}

// annotationsOfPods returns those of the instance's pods, of which these are its own.
func (w Workload) annotationsOfPods(own map[string]string) map[string]string {
	annotations := map[string]string{}
	for _, c := range w.serverConfigs() {
		maps.Copy(annotations, c.PodAnnotations)
	}
	maps.Copy(annotations, own)
	return annotations
}

// ownResources are those that a user has set for named, nil if there are none.
func (w Workload) ownResources() (merged *corev1.ResourceRequirements) {
	for _, c := range w.serverConfigs() {
		merged = cmp.Or(c.Resources, merged)
	}
	return merged
}

// resources are those of named.
func (w Workload) resources() (*corev1ac.ResourceRequirementsApplyConfiguration, error) {
	own := w.ownResources()
	if own == nil {
		return resourceRequests("50m", "64Mi", ""), nil
	}
	return toApply[corev1ac.ResourceRequirementsApplyConfiguration](own)
}

// spreadConstraints returns these rules, or the default if there are none. An empty list is one.
func (w Workload) spreadConstraints(rules []v1beta1.SpreadRule) []*corev1ac.TopologySpreadConstraintApplyConfiguration {
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

package named_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// TestNetworkPolicy: the policy of the component servers-network-policy fits the pods: it selects them, and its ports
// are theirs. Everybody reaches DNS; the sidecar is for the namespace of Lockstep alone.
func TestNetworkPolicy(t *testing.T) {
	text, err := os.ReadFile("../../../manifests/components/servers-network-policy/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var policy networkingv1.NetworkPolicy
	if err := yaml.UnmarshalStrict(text, &policy); err != nil {
		t.Fatal(err)
	}
	open := map[string][]networkingv1.NetworkPolicyPeer{}
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			open[port.Port.String()+"/"+string(*port.Protocol)] = rule.From
		}
	}
	for _, role := range []v1beta1.ServerRole{v1beta1.RolePrimary, v1beta1.RoleSecondary} {
		w := workload(t)
		w.Instance.Spec.Role = role
		template := statefulSet(t, w).Spec.Template
		if !selects(t, &policy.Spec.PodSelector, template.Labels) || !selects(t, policy.Spec.Egress[0].To[0].PodSelector, template.Labels) {
			t.Errorf("%s: the policy does not select pods with labels %v", role, template.Labels)
		}
		var ports []string
		for _, p := range slices.Concat(template.Spec.Containers[0].Ports, template.Spec.Containers[1].Ports) {
			ports = append(ports, fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol))
		}
		for port := range open {
			if !slices.Contains(ports, port) {
				t.Errorf("%s: the policy opens %s, pods have %v", role, port, ports)
			}
		}
	}
	if len(open) != 3 || len(open["5353/UDP"]) != 0 || len(open["5353/TCP"]) != 0 || len(open["8080/TCP"]) != 1 {
		t.Fatalf("open are %v", open)
	}
	from := open["8080/TCP"][0]
	controller := map[string]string{"app.kubernetes.io/name": "lockstep", "app.kubernetes.io/component": "controller"}
	if !selects(t, from.NamespaceSelector, map[string]string{corev1.LabelMetadataName: "lockstep-system"}) || !selects(t, from.PodSelector, controller) {
		t.Errorf("the controller cannot reach the sidecar: %+v", from)
	}
	if selects(t, from.NamespaceSelector, map[string]string{corev1.LabelMetadataName: "dns"}) {
		t.Error("other namespaces reach the sidecar")
	}
}

func selects(t *testing.T, s *metav1.LabelSelector, of map[string]string) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(labels.Set(of))
}

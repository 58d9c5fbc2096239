package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// The policy for servers, made as docs/install.md says, fits the pods that there are: it selects them, and its ports are
// theirs. Everybody reaches DNS, and Lockstep's own pods alone the sidecar.
func TestFleetNetworkPolicy(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	instance := f.instance("alone", v1beta1.RolePrimary, 1)
	f.create(instance)
	dir := t.TempDir()
	component, err := filepath.Rel(dir, filepath.Join(kube.Root(t), "manifests/components/servers-network-policy"))
	if err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: " + f.namespace + "\ncomponents: [" + component + "]\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	kube.Kubectl(t, "", "apply", "-k", dir)

	policy := &networkingv1.NetworkPolicy{ObjectMeta: f.meta("lockstep-bind9", nil)}
	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(policy), policy); err != nil {
		t.Fatal(err)
	}
	selects := func(s *metav1.LabelSelector, of map[string]string) bool {
		selector, err := metav1.LabelSelectorAsSelector(s)
		return err == nil && selector.Matches(labels.Set(of))
	}
	var pod corev1.Pod
	kube.Eventually(t, kube.Settle, func(ctx context.Context) error {
		return f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: "alone-0"}, &pod)
	})
	if !selects(&policy.Spec.PodSelector, pod.Labels) || !selects(policy.Spec.Egress[0].To[0].PodSelector, pod.Labels) {
		t.Errorf("the policy does not select pods with labels %v", pod.Labels)
	}
	open := map[string][]networkingv1.NetworkPolicyPeer{}
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			open[port.Port.String()+"/"+string(*port.Protocol)] = rule.From
		}
	}
	for _, want := range []string{"5353/UDP", "5353/TCP", "8080/TCP"} {
		if _, ok := open[want]; !ok {
			t.Errorf("port %s is closed", want)
		}
		if !slices.ContainsFunc(slices.Concat(pod.Spec.Containers[0].Ports, pod.Spec.Containers[1].Ports), func(p corev1.ContainerPort) bool {
			return fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol) == want
		}) {
			t.Errorf("no container has port %s", want)
		}
	}
	if len(open) != 3 || len(open["5353/UDP"]) != 0 || len(open["5353/TCP"]) != 0 || len(open["8080/TCP"]) != 1 {
		t.Errorf("open are %v", open)
	}
	from := open["8080/TCP"][0]
	var home corev1.Namespace
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: system}, &home); err != nil {
		t.Fatal(err)
	}
	var controllers corev1.PodList
	if err := f.client.List(t.Context(), &controllers, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/component": "controller"}); err != nil {
		t.Fatal(err)
	}
	if len(controllers.Items) == 0 || !selects(from.NamespaceSelector, home.Labels) || !selects(from.PodSelector, controllers.Items[0].Labels) {
		t.Errorf("the controller cannot reach the sidecar: %+v", from)
	}
	if selects(from.NamespaceSelector, map[string]string{"kubernetes.io/metadata.name": f.namespace}) {
		t.Error("other namespaces reach the sidecar")
	}
}

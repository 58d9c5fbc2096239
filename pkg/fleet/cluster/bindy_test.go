package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// What docs/reference/bindy.md says of labels, selectors and names is what is made for a cluster.
func TestNamesOfBindy(t *testing.T) {
	facts := madeFacts(t)
	text, err := os.ReadFile("../../../docs/reference/bindy.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || strings.HasPrefix(cells[0], "-") {
			continue
		}
		for i, c := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(c), "`")
		}
		want := cells[3]
		if want == "same" {
			want = cells[2]
		}
		if made, known := facts[cells[0]+": "+cells[1]]; known {
			if rows++; made != want {
				t.Errorf("%s, %s is %q, the document says %q", cells[0], cells[1], made, want)
			}
			delete(facts, cells[0]+": "+cells[1])
		}
	}
	if rows < 30 {
		t.Errorf("only %d rows were compared", rows)
	}
	for fact, value := range facts {
		t.Errorf("%s is %q, and the document does not have it", fact, value)
	}
}

// madeFacts returns the labels and names of what is made for the first primary of a cluster, as "on: key".
func madeFacts(t *testing.T) map[string]string {
	cluster := &v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "dns"}}
	cluster.Spec.Primary = &v1beta1.RoleConfig{}
	c := inventory.Cluster{Object: cluster, Kind: v1beta1.GroupVersion.WithKind("Bind9Cluster"), Namespace: "team", Spec: &cluster.Spec}
	made := declaredInstances(c)[0].configuration(c)
	w := named.Workload{Instance: &v1beta1.Bind9Instance{}, Cluster: *c.Spec, Images: named.Images{Bindcar: "lockstep:1"}}
	decode(t, made, w.Instance, nil)
	var set appsv1.StatefulSet
	var service corev1.Service
	var config corev1.ConfigMap
	setConfiguration, err := w.StatefulSet()
	decode(t, setConfiguration, &set, err)
	serviceConfiguration, _, err := w.Services(corev1.ServiceSpec{})
	decode(t, serviceConfiguration, &service, err)
	configConfiguration, err := w.ConfigMap()
	decode(t, configConfiguration, &config, err)
	pod := set.Spec.Template
	budget := w.DisruptionBudget(metav1ac.OwnerReference())
	facts := map[string]string{
		"annotation of the instance: bindy.firestoned.io/instance-index": made.GetAnnotations()[v1beta1.InstanceIndexAnnotation],
		"workload: kind": set.Kind, "workload: name": set.Name, "Service: name": service.Name, "ConfigMap: name": config.Name,
		"PodDisruptionBudget: name": *budget.Name, "key: Secret": named.KeySecretName(serving.KeyOwner(w.Instance), named.KeyUpdate),
		"pod: service account": pod.Spec.ServiceAccountName, "pod: readiness gate": string(pod.Spec.ReadinessGates[0].ConditionType),
	}
	addLabels := func(on string, labels map[string]string, keys ...string) {
		for _, key := range keys {
			facts[on+": "+key] = labels[key]
		}
	}
	const recommended = "app.kubernetes.io/"
	addLabels("instance", made.GetLabels(), recommended+"part-of", v1beta1.ManagedByLabel, v1beta1.ClusterLabel, v1beta1.RoleLabel)
	addLabels("pod", pod.Labels, "app", "instance", recommended+"name", recommended+"instance", recommended+"component", recommended+"part-of",
		recommended+"managed-by", v1beta1.ClusterLabel, v1beta1.RoleLabel)
	addLabels("Service", service.Labels, "app", "instance", recommended+"managed-by")
	for key, value := range service.Spec.Selector {
		facts["selector of the Service: "+key] = value
	}
	for _, p := range service.Spec.Ports {
		facts[fmt.Sprintf("Service: port %d/%s", p.Port, p.Protocol)] = p.Name
	}
	for i, container := range pod.Spec.Containers {
		facts[fmt.Sprintf("pod: container %d", i)] = container.Name
	}
	for _, p := range pod.Spec.Containers[0].Ports {
		facts[fmt.Sprintf("pod: port %d/%s", p.ContainerPort, p.Protocol)] = p.Name
	}
	return facts
}

// decode turns a configuration into the object that it becomes.
func decode(t *testing.T, configuration, object any, err error) {
	t.Helper()
	text, failure := json.Marshal(configuration)
	if err == nil {
		err = failure
	}
	if err == nil {
		err = json.Unmarshal(text, object)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A former instance that Bindy's finalizer keeps is named by its cluster, with the finalizer.
func TestLeavingInstanceWaitsForBindy(t *testing.T) {
	h := newClusterTest(t, 100)
	h.reconcile()
	former := &v1beta1.Bind9Instance{}
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "dns-secondary-98"}, former); err != nil {
		t.Fatal(err)
	}
	former.Finalizers = append(former.Finalizers, "bindy.firestoned.io/bind9instance-finalizer", "example.com/other-finalizer")
	cluster := h.cluster()
	cluster.Spec.Secondary.Replicas = new(int32(98))
	if err := errors.Join(h.client.Update(t.Context(), former), h.client.Delete(t.Context(), former)); err != nil {
		t.Fatal(err)
	}
	_, facts, err := h.readInstances(t.Context(), cluster)
	want := "dns-secondary-98, which waits for another operator to remove its finalizer bindy.firestoned.io/bind9instance-finalizer"
	if err != nil || len(facts.Leaving) != 1 || facts.Leaving[0] != want {
		t.Errorf("leaving are %q, error %v", facts.Leaving, err)
	}
}

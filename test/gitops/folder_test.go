package gitops

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/test/kube"
)

func TestMain(m *testing.M) { kube.Main(m) }

// appLabel is the label by which Argo CD finds what belongs to an application.
const appLabel = "app.kubernetes.io/instance"

// folder returns the objects of a folder: a cluster, a zone and records by name and address.
func folder(t *testing.T, namespace string, records map[string]string) []*unstructured.Unstructured {
	t.Helper()
	texts := []string{
		"{kind: Bind9Cluster, metadata: {name: dns}, spec: {primary: {replicas: 1}}}",
		"{kind: DNSZone, metadata: {name: main}, spec: {zoneName: " + namespace + ".example, clusterRef: dns, soaRecord: {primaryNs: ns1.example., " +
			"adminEmail: hostmaster.example.}, recordsFrom: [{selector: {}}]}}",
	}
	for name, address := range records {
		texts = append(texts, fmt.Sprintf("{kind: ARecord, metadata: {name: %s}, spec: {name: %s, ipv4Addresses: [%s]}}", name, name, address))
	}
	return parse(t, namespace, texts...)
}

// parse returns the objects of texts, as objects of a namespace with the label by which Argo CD finds them.
func parse(t *testing.T, namespace string, texts ...string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, text := range texts {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		o.SetAPIVersion("bindy.firestoned.io/v1beta1")
		o.SetNamespace(namespace)
		o.SetLabels(map[string]string{appLabel: namespace})
		all = append(all, o)
	}
	return all
}

// waitPropagated waits until every server answers with what a record declares.
func waitPropagated(t *testing.T, namespace, record string) {
	t.Helper()
	kube.Kubectl(t, "", "-n", namespace, "wait", "--for=condition=Propagated", "syncstatus/arecord."+record, "--timeout=120s")
}

// waitGone waits until nothing of some kinds is in a namespace.
func waitGone(t *testing.T, c client.Client, namespace string, kinds ...string) {
	t.Helper()
	kube.Eventually(t, kube.Start, func(ctx context.Context) (err error) {
		for _, kind := range kinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: "bindy.firestoned.io", Version: "v1beta1", Kind: kind + "List"})
			if read := c.List(ctx, list, client.InNamespace(namespace)); read != nil {
				err = errors.Join(err, read)
			}
			for i := range list.Items {
				err = errors.Join(err, fmt.Errorf("%s %s is still there", kind, list.Items[i].GetName()))
			}
		}
		return err
	})
}

// requireSelected fails the test unless a label finds the objects of an application only, and no SyncStatus.
func requireSelected(t *testing.T, namespace string) {
	t.Helper()
	if out := kube.Kubectl(t, "", "-n", namespace, "get", "syncstatus", "-l", appLabel+"="+namespace, "-o", "name"); out != "" {
		t.Errorf("a tool takes these for objects of its own: %s", out)
	}
}

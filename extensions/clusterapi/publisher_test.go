package clusterapi

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// Answers about another object, an older declaration or one that somebody changed show nothing about the wanted one.
func TestIsAbout(t *testing.T) {
	ref := syncv1.ObjectReference{UID: "1", Generation: 2}
	wanted := &v1alpha1.DNSEndpoint{Spec: v1alpha1.DNSEndpointSpec{Endpoints: []*v1alpha1.Endpoint{{DNSName: "a", Targets: []string{"192.0.2.1"}}}}}
	for name, c := range map[string]struct {
		change func(found *v1alpha1.DNSEndpoint)
		want   bool
	}{
		"the same":      {func(*v1alpha1.DNSEndpoint) {}, true},
		"none":          {func(e *v1alpha1.DNSEndpoint) { *e = v1alpha1.DNSEndpoint{} }, false},
		"another":       {func(e *v1alpha1.DNSEndpoint) { e.UID = "2" }, false},
		"newer":         {func(e *v1alpha1.DNSEndpoint) { e.Generation = 3 }, false},
		"edited by one": {func(e *v1alpha1.DNSEndpoint) { e.Spec.Endpoints[0].Targets = []string{"192.0.2.2"} }, false},
	} {
		found := wanted.DeepCopy()
		found.UID, found.Generation = "1", 2
		c.change(found)
		if got := isAbout(ref, wanted, found); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if isAbout(syncv1.ObjectReference{}, wanted, wanted) {
		t.Error("no answer is taken for one")
	}
}

// Of Secrets only the ID of a network is read, only from one of Crossplane's, and only in the workspace's namespace.
func TestReadVPC(t *testing.T) {
	secret := func(namespace, name string, kind corev1.SecretType, id string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: kind, Data: map[string][]byte{vpcEntry: []byte(id)}}
	}
	live := fake.NewClientBuilder().WithObjects(
		secret("team", "good", connectionType, "vpc-1"), secret("team", "password", corev1.SecretTypeOpaque, "vpc-1"),
		secret("team", "strange", connectionType, "Pa55 word"), secret("team", "empty", connectionType, ""), secret("other", "good", connectionType, "vpc-2"),
	).Build()
	for _, c := range []struct{ namespace, name, id, reason string }{
		{"team", "good", "vpc-1", ""}, {"", "good", "vpc-1", ""}, {"", "", "", status.SecretNotReady}, {"", "missing", "", status.SecretNotReady},
		{"", "password", "", status.SecretNotReady}, {"", "strange", "", status.SecretNotReady}, {"", "empty", "", status.SecretNotReady},
		{"other", "good", "", status.SecretForeign},
	} {
		workspace := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"writeConnectionSecretToRef": map[string]any{"name": c.name, "namespace": c.namespace}}}}
		workspace.SetNamespace("team")
		facts := status.CAPTClusterFacts{}
		if err := readVPC(t.Context(), live, workspace, &facts); err != nil || facts.VPCID != c.id || facts.SecretProblem.Reason != c.reason {
			t.Errorf("Secret %s/%s: ID %q, %+v, %v", c.namespace, c.name, facts.VPCID, facts.SecretProblem, err)
		}
	}
}

// What a workspace shows is read whatever form it has, and bounded.
func TestForeignWorkspace(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"conditions": []any{"x", map[string]any{"type": int64(1)}, map[string]any{"type": "Ready", "status": "True", "reason": "Available"}},
		"outputs":    map[string]any{"region": "eu", "number": int64(1), "long": string(make([]byte, maxOutputLength))},
	}}}
	if got := verdictIn(o, "Ready"); got != status.True("Available", "") {
		t.Errorf("Ready is %+v", got)
	}
	if got := outputsOf(o); len(got) != 1 || got["region"] != "eu" {
		t.Errorf("outputs %v", got)
	}
	o.Object["status"] = "x"
	if got := verdictIn(o, "Ready"); got != (status.Verdict{}) || outputsOf(o) != nil {
		t.Errorf("of a status that is a string: %+v", got)
	}
}

// The endpoint and the references of a Cluster are read in both versions, whatever is there.
func TestForeignCluster(t *testing.T) {
	for name, c := range map[string]struct {
		spec any
		host string
		port int32
		is   bool
	}{
		"v1beta2":     {map[string]any{"controlPlaneEndpoint": map[string]any{"host": "h", "port": int64(6443)}, "infrastructureRef": map[string]any{"apiGroup": infrastructureKind.Group, "kind": "CAPTCluster", "name": "n"}}, "h", 6443, true},
		"v1beta1":     {map[string]any{"controlPlaneEndpoint": map[string]any{"host": "h"}, "infrastructureRef": map[string]any{"apiVersion": infrastructureKind.GroupVersion().String(), "kind": "CAPTCluster", "name": "n"}}, "h", 0, true},
		"other group": {map[string]any{"controlPlaneEndpoint": map[string]any{"host": "h", "port": int64(1 << 40)}, "infrastructureRef": map[string]any{"apiGroup": "x", "kind": "CAPTCluster"}}, "h", 65535, false},
		"strange":     {map[string]any{"controlPlaneEndpoint": "x", "infrastructureRef": int64(1)}, "", 0, false},
		"none":        {nil, "", 0, false},
	} {
		cluster := &unstructured.Unstructured{Object: map[string]any{"spec": c.spec}}
		got := endpointIn(cluster)
		if _, is := refersTo(cluster, "infrastructureRef", infrastructureKind); got.Host != c.host || got.Port != c.port || is != c.is {
			t.Errorf("%s: %+v, refers to a CAPTCluster: %v", name, got, is)
		}
	}
	for version, want := range map[string]int{"v1beta1": 3, "v1beta2": 2} {
		if path := (clusters{kind: schema.GroupVersionKind{Version: version}}).conditionsPath(); len(path) != want {
			t.Errorf("conditions of %s are at %v", version, path)
		}
	}
}

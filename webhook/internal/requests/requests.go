// Package requests makes admission requests for tests.
package requests

import (
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// FromYAML makes the request of kube-apiserver for an object in YAML: an update when old is not empty, else a creation.
func FromYAML(t testing.TB, object, old string) admission.Request {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &head); err != nil {
		t.Fatal(err)
	}
	gvk := head.GroupVersionKind()
	if gvk.Group == "" {
		gvk = v1beta1.GroupVersion.WithKind(head.Kind)
	}
	req := admissionv1.AdmissionRequest{
		UID:       types.UID("u"),
		Kind:      metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
		Name:      head.Name,
		Namespace: head.Namespace,
		Operation: admissionv1.Create,
		Object:    runtime.RawExtension{Raw: raw},
	}
	if old != "" {
		req.Operation = admissionv1.Update
		if req.OldObject.Raw, err = yaml.YAMLToJSON([]byte(old)); err != nil {
			t.Fatal(err)
		}
	}
	return admission.Request{AdmissionRequest: req}
}

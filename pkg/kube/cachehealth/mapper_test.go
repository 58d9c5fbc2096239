package cachehealth

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// A kube-apiserver that does not answer is not asked about the kinds that components follow, and each is what its definition says.
func TestKindsAreKnownWithoutTheServer(t *testing.T) {
	mapper, err := NewMapper(&rest.Config{Host: "https://127.0.0.1:1"}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../../manifests/crds/*_*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}, crd.Spec.Versions[0].Name)
		if err != nil {
			t.Errorf("%s: %v", crd.Spec.Names.Kind, err)
			continue
		}
		namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
		if mapping.Resource.Resource != crd.Spec.Names.Plural || namespaced != (crd.Spec.Scope == apiextensionsv1.NamespaceScoped) {
			t.Errorf("%s is %s, namespaced: %v", crd.Spec.Names.Kind, mapping.Resource.Resource, namespaced)
		}
	}
	if mapping, err := mapper.RESTMapping(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "v1"); err != nil || mapping.Resource.Resource != "pods" {
		t.Errorf("pods: %v, %v", mapping, err)
	}
	if _, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v1"); err == nil {
		t.Error("another kind is known although nobody was asked")
	}
}

package schema

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dns/lockstep/manifests"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// A name is valid only if Services, pods and the label with the revision of a StatefulSet can be named after it.
func TestNamesOfInstancesAndClusters(t *testing.T) {
	kinds, err := Load(manifests.Definitions())
	if err != nil {
		t.Fatal(err)
	}
	const longest = "-secondary-99"
	for kind, most := range map[string]int{"Bind9Instance": 52, "Bind9Cluster": 52 - len(longest), "Bind9GlobalCluster": 52 - len(longest), "ClusterBind9Provider": 52 - len(longest)} {
		for name, valid := range map[string]bool{
			"dns": true, "a": true, "ns-1": true, strings.Repeat("a", most): true,
			strings.Repeat("a", most+1): false, strings.Repeat("a", 250): false, "my.server": false, "1st": false, "-a": false, "a-": false, "A": false,
		} {
			object := map[string]any{
				"apiVersion": v1beta1.GroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": name}, "spec": map[string]any{"role": "primary"},
			}
			if kind != "Bind9Instance" {
				object["spec"] = map[string]any{}
			}
			problems, err := kinds[v1beta1.GroupVersion.WithKind(kind)].Admit(t.Context(), object, nil)
			if err != nil {
				t.Fatal(err)
			}
			if (len(problems) == 0) != valid || !valid && !strings.Contains(problems.ToAggregate().Error(), fmt.Sprintf("metadata.name must be at most %d ", most)) {
				t.Errorf("%s %s: %v", kind, name, problems)
			}
			if problems, err = kinds[v1beta1.GroupVersion.WithKind(kind)].Admit(t.Context(), object, object); err != nil || len(problems) > 0 {
				t.Errorf("%s %s that is stored cannot be updated, by the controller neither: %v, %v", kind, name, problems, err)
			}
			if instance := name + map[bool]string{true: "", false: longest}[kind == "Bind9Instance"]; valid &&
				(len(validation.IsDNS1035Label(instance)) > 0 || len(validation.IsValidLabelValue(instance+"-5d89bdfbbf")) > 0) {
				t.Errorf("%s %s: the children of %s have no valid names", kind, name, instance)
			}
		}
	}
}

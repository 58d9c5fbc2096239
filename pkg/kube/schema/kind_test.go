package schema

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/manifests"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// What kube-apiserver refuses beside schema and CEL rules: unknown metadata, and values that a list has twice.
func TestAdmit(t *testing.T) {
	kinds, err := Load(manifests.Definitions())
	if err != nil {
		t.Fatal(err)
	}
	const zone = "metadata: {name: z}\nspec: {zoneName: example.com, soaRecord: {primaryNs: ns1.example.com., adminEmail: a.example.com.}"
	const twice = zone + ", guard: {neverEmpty: [www, a, www]}, providerRefs: [{name: a}, {name: b}, {name: a}]}"
	for name, tc := range map[string]struct {
		object, old string
		want        []string
	}{
		"good":                      {object: zone + "}"},
		"metadata in full":          {object: "metadata: {name: z, namespace: dns, labels: {a: b}, ownerReferences: [{apiVersion: v1, kind: A, name: a, uid: u}], creationTimestamp: null}" + zone[len("metadata: {name: z}"):] + "}"},
		"mistyped metadata":         {object: strings.Replace(zone, "name: z", "name: z, lables: {a: b}", 1) + "}", want: []string{"metadata.lables: Invalid value: unknown field; write labels"}},
		"unknown metadata":          {object: strings.Replace(zone, "name: z", "name: z, owner: me", 1) + "}", want: []string{"metadata.owner: Invalid value: unknown field"}},
		"metadata of another type":  {object: strings.Replace(zone, "name: z", "name: z, resourceVersion: 5", 1) + "}", want: []string{"resourceVersion of type string"}},
		"a mistyped field":          {object: strings.Replace(zone, "zoneName", "zonName", 1) + "}", want: []string{"spec.zonName: Invalid value: unknown field; write zoneName", "spec.zoneName: Required"}},
		"labels beside a selector":  {object: zone + ", recordsFrom: [{selector: {}, matchLabels: {a: b}}]}", want: []string{"spec.recordsFrom[0].matchLabels: Invalid value: unknown field; it belongs in selector"}},
		"labels in a selector":      {object: zone + ", recordsFrom: [{selector: {a: b}}]}", want: []string{"unknown field; labels belong in matchLabels"}},
		"twice":                     {object: twice, want: []string{`spec.guard.neverEmpty[2]: Duplicate value: "www"`, `spec.providerRefs[2]: Duplicate value: {"name":"a"}`}},
		"twice before, and now":     {object: twice, old: twice},
		"once before, and twice":    {object: twice, old: zone + "}", want: []string{"neverEmpty[2]", "providerRefs[2]"}},
		"twice before, and not now": {object: zone + "}", old: twice},
	} {
		read := func(text string) (object map[string]any) {
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			if object != nil {
				object["apiVersion"], object["kind"] = v1beta1.GroupVersion.String(), "DNSZone"
			}
			return object
		}
		problems, err := kinds[v1beta1.GroupVersion.WithKind("DNSZone")].Admit(t.Context(), read(tc.object), read(tc.old))
		if err != nil {
			t.Fatal(err)
		}
		if len(problems) != len(tc.want) {
			t.Errorf("%s: %v, want %q", name, problems, tc.want)
			continue
		}
		for i, want := range tc.want {
			if got := problems[i].Error(); !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
}

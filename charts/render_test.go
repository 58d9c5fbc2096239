package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const checkedIn = "lockstep"

// loadChart returns the chart that is checked in.
func loadChart(t testing.TB) *chart.Chart {
	t.Helper()
	c, err := loader.Load(checkedIn)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// renderChart returns what Helm renders of a chart, as text by the names of templates. The error is that of the schema of values, too.
func renderChart(c *chart.Chart, namespace string, values map[string]any) (map[string]string, error) {
	all, err := util.ToRenderValues(c, values, common.ReleaseOptions{Name: "lockstep", Namespace: namespace, Revision: 1, IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// readObjects returns the objects of a rendering by their ids.
func readObjects(t testing.TB, rendered map[string]string) map[string]map[string]any {
	t.Helper()
	objects := map[string]map[string]any{}
	for name, content := range rendered {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		documents := yaml.NewYAMLToJSONDecoder(strings.NewReader(content))
		for {
			var o map[string]any
			if err := documents.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, content)
			}
			if len(o) == 0 {
				continue
			}
			if objects[identify(o)] != nil {
				t.Errorf("%s is rendered twice", identify(o))
			}
			objects[identify(o)] = o
		}
	}
	return objects
}

func mustRender(t testing.TB, c *chart.Chart, namespace string, values map[string]any) map[string]map[string]any {
	t.Helper()
	rendered, err := renderChart(c, namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	return readObjects(t, rendered)
}

// valuesOf returns the values that turn options on.
func valuesOf(on set) map[string]any {
	values := map[string]any{}
	for name := range on {
		group, key, _ := strings.Cut(strings.TrimPrefix(optionNamed(name).condition, ".Values."), ".")
		if values[group] == nil {
			values[group] = map[string]any{}
		}
		values[group].(map[string]any)[key] = map[bool]any{true: cidrPlaceholder, false: true}[key == "controlPlane"]
	}
	return values
}

// kustomized returns what kustomize renders as JSON has it, so that numbers are of one type, without the Namespace, which Helm does not
// make.
func kustomized(t testing.TB, k *kustomization, o overlay) map[string]map[string]any {
	t.Helper()
	objects, err := k.render(o)
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(objects, func(_ string, o map[string]any) bool { return o["kind"] == "Namespace" })
	text := map[string]string{}
	for id, o := range objects {
		text[id+".yaml"] = marshalJSON(o)
	}
	return readObjects(t, text)
}

// dropKeep removes the one annotation that only the chart has.
func dropKeep(objects map[string]map[string]any) {
	for _, o := range objects {
		metadata := o["metadata"].(map[string]any)
		if annotations, ok := metadata["annotations"].(map[string]any); ok && o["kind"] == "CustomResourceDefinition" {
			delete(annotations, "helm.sh/resource-policy")
		}
	}
}

// With its default values the chart is the overlay default, object by object; with those of other overlays it is these.
func TestChartIsOverlay(t *testing.T) {
	k, err := loadKustomization("../manifests")
	if err != nil {
		t.Fatal(err)
	}
	for name, on := range map[string]set{"default": nil, "ha": {"high-availability": true}, "cluster-api": {"cluster-api": true}, "enrolled": {"enrolled-only": true}} {
		t.Run(name, func(t *testing.T) {
			want := kustomized(t, k, overlay{components: on})
			got := mustRender(t, loadChart(t), "lockstep-system", valuesOf(on))
			for id, o := range got {
				if o["kind"] == "CustomResourceDefinition" && !strings.Contains(marshalJSON(o), `"helm.sh/resource-policy":"keep"`) {
					t.Errorf("%s does not stay", id)
				}
			}
			dropKeep(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("kustomize -, chart +:\n%s", diff)
			}
			t.Logf("%d objects are equal", len(got))
		})
	}
}

// Combinations of options are what kustomize renders with these components, in another namespace, too.
func TestCombinations(t *testing.T) {
	k, err := loadKustomization("../manifests")
	if err != nil {
		t.Fatal(err)
	}
	// Definitions do not depend on options, and take most of the time.
	if err := k.files.WriteFile("/manifests/crds/kustomization.yaml", []byte("kind: Kustomization\nresources: []\ngeneratorOptions: {}\n")); err != nil {
		t.Fatal(err)
	}
	c := loadChart(t)
	c.Templates = slices.DeleteFunc(c.Templates, func(f *common.File) bool {
		return strings.Contains(f.Name, "/crds/") && !strings.Contains(f.Name, "capt")
	})
	tried := 0
	for _, on := range combinations() {
		got := mustRender(t, c, "team-dns", valuesOf(on))
		dropKeep(got)
		if diff := cmp.Diff(kustomized(t, k, overlay{components: on, namespace: "team-dns"}), got); diff != "" {
			t.Fatalf("with %v: kustomize -, chart +:\n%s", on, diff)
		}
		tried++
	}
	t.Logf("%d combinations of %d options are equal", tried, len(options))
}

// combinations returns none, each and each two of the options, with what they need, and all: no option meets more than one other.
func combinations() (all []set) {
	seen := map[string]bool{}
	add := func(names ...string) {
		on := set{}
		for _, name := range names {
			on = on.with(name).with(optionNamed(name).needs...)
		}
		if key := fmt.Sprint(on); !seen[key] {
			seen[key] = true
			all = append(all, on)
		}
	}
	var names []string
	for _, o := range options {
		names = append(names, o.name)
	}
	add()
	add(names...)
	for i, a := range names {
		for _, b := range names[:i+1] {
			add(a, b)
		}
	}
	return all
}

// Nothing of a rendering is by chance, secret, or of another installation: two are equal, and no Secret has data.
func TestRenderingIsPure(t *testing.T) {
	everything := set{}
	for _, o := range options {
		everything[o.name] = true
	}
	for name, on := range map[string]set{"default": nil, "everything": everything} {
		first, err := renderChart(loadChart(t), "team-dns", valuesOf(on))
		if err != nil {
			t.Fatal(err)
		}
		second, err := renderChart(loadChart(t), "team-dns", valuesOf(on))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("%s: two renderings differ:\n%s", name, diff)
		}
		for id, o := range readObjects(t, first) {
			text := marshalJSON(o)
			if o["kind"] == "Secret" && (on == nil || o["data"] != nil || o["stringData"] != nil) {
				t.Errorf("%s: %s is rendered", name, id)
			}
			for _, bad := range []string{"BEGIN ", `"caBundle":"`, "placeholder", "lockstep-system"} {
				if strings.Contains(text, bad) {
					t.Errorf("%s: %s contains %q", name, id, bad)
				}
			}
		}
	}
	for _, file := range loadChart(t).Templates {
		for line := range strings.Lines(string(file.Data)) {
			if impure.MatchString(line) {
				t.Errorf("%s calls what may have another result next time: %s", file.Name, line)
			}
		}
	}
}

// impure is a function of templates that returns something else each time, or what the cluster has.
var impure = regexp.MustCompile(`{{.*\b(lookup|rand\w+|gen[A-Z]\w+|now|ago|date\w*|uuidv4|env|expandenv|htpasswd|bcrypt|getHostByName)\b.*}}`)

// Values reach what they are for, and the schema refuses what is none.
func TestValues(t *testing.T) {
	tests := map[string]struct {
		values map[string]any
		// kind, name and text of an object that is rendered.
		kind, name string
		contains   []string
		lacks      string
		refused    string
	}{
		"tag": {
			values: map[string]any{"image": map[string]any{"repository": "registry.example.com/lockstep", "tag": "v1.2.3", "pullPolicy": "Always"}},
			kind:   "Deployment", name: "lockstep-fleet",
			contains: []string{`"image":"registry.example.com/lockstep:v1.2.3"`, `"name":"LOCKSTEP_IMAGE","value":"registry.example.com/lockstep:v1.2.3"`, `"imagePullPolicy":"Always"`},
			lacks:    "--bindcar-image",
		},
		"digest": {
			values: map[string]any{"image": map[string]any{"digest": "sha256:" + strings.Repeat("0a", 32)}},
			kind:   "Deployment", name: "lockstep-webhook", contains: []string{`"image":"lockstep@sha256:` + strings.Repeat("0a", 32) + `"`},
		},
		"digest and the sidecar's tag": {
			values: map[string]any{"image": map[string]any{"repository": "registry.example.com/lockstep", "tag": "v1.2.3", "digest": "sha256:" + strings.Repeat("0a", 32)}},
			kind:   "Deployment", name: "lockstep-fleet", contains: []string{`"--bindcar-image=registry.example.com/lockstep-sidecar:v1.2.3"`},
		},
		"the sidecar's digest": {
			values: map[string]any{"image": map[string]any{"repository": "registry.example.com/lockstep", "sidecarDigest": "sha256:" + strings.Repeat("0b", 32)}},
			kind:   "Deployment", name: "lockstep-fleet", contains: []string{`"--bindcar-image=registry.example.com/lockstep-sidecar@sha256:` + strings.Repeat("0b", 32) + `"`},
		},
		"bad digest": {values: map[string]any{"image": map[string]any{"digest": "0a"}}, refused: "/image/digest"},
		"component": {
			values: map[string]any{"controller": map[string]any{
				"replicas": 3, "extraArgs": []any{"--zone-timeout=1h"}, "resources": map[string]any{"limits": map[string]any{"memory": "4Gi"}},
				"nodeSelector": map[string]any{"role": "dns"}, "tolerations": []any{map[string]any{"key": "dns", "operator": "Exists"}},
				"affinity": map[string]any{"nodeAffinity": map[string]any{}}, "podAnnotations": map[string]any{"a": "b"},
			}, "imagePullSecrets": []any{map[string]any{"name": "registry"}}},
			kind: "Deployment", name: "lockstep-controller",
			contains: []string{
				`"replicas":3`, `"args":["controller","--zone-timeout=1h"]`, `"resources":{"limits":{"memory":"4Gi"},"requests":{"cpu":"50m","memory":"96Mi"}}`,
				`"nodeSelector":{"role":"dns"}`, `"tolerations":[{"key":"dns","operator":"Exists"}]`, `"affinity":{"nodeAffinity":{}}`, `"annotations":{"a":"b"}`,
				`"imagePullSecrets":[{"name":"registry"}]`,
			},
		},
		"none of a component": {
			values: map[string]any{"webhook": map[string]any{"replicas": 0}, "highAvailability": map[string]any{"enabled": true}},
			kind:   "Deployment", name: "lockstep-webhook", contains: []string{`"replicas":0`},
		},
		"BIND": {
			values: map[string]any{"bind9Image": "registry.example.com/bind9:9.20,9.18=registry.example.com/bind9:9.18"},
			kind:   "Deployment", name: "lockstep-fleet", contains: []string{`"--bind9-image=registry.example.com/bind9:9.20,9.18=registry.example.com/bind9:9.18"`},
		},
		"definitions go": {
			values: map[string]any{"crds": map[string]any{"keep": false}},
			kind:   "CustomResourceDefinition", name: "dnszones.bindy.firestoned.io", lacks: "resource-policy",
		},
		"repositories": {
			values: map[string]any{"imagePolicy": map[string]any{"enabled": true, "repositories": []any{"registry.example.com/dns/"}}},
			kind:   "ValidatingAdmissionPolicy", name: "lockstep-images", contains: []string{`"expression":"[\"registry.example.com/dns/\"]","name":"repositories"`},
		},
		"control plane": {
			values: map[string]any{"networkPolicy": map[string]any{"enabled": true, "controlPlane": "2001:db8::/64"}},
			kind:   "NetworkPolicy", name: "lockstep-webhook", contains: []string{`"cidr":"2001:db8::/64"`},
		},
		"bad control plane": {values: map[string]any{"networkPolicy": map[string]any{"controlPlane": "kube-apiserver"}}, refused: "/networkPolicy/controlPlane"},
		"external-dns": {
			values: map[string]any{"externalDNS": map[string]any{"enabled": true, "image": "registry.example.com/external-dns:v1", "extraArgs": []any{"--source=node"}}},
			kind:   "Deployment", name: "lockstep-external-dns", contains: []string{`"image":"registry.example.com/external-dns:v1"`, `"--source=node"`},
		},
		"misspelled":    {values: map[string]any{"highAvailabilty": map[string]any{"enabled": true}}, refused: "highAvailabilty"},
		"of wrong type": {values: map[string]any{"controller": map[string]any{"replicas": "2"}}, refused: "/controller/replicas"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rendered, err := renderChart(loadChart(t), "lockstep-system", tc.values)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("the error does not name %s: %v", tc.refused, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range readObjects(t, rendered) {
				if o["kind"] != tc.kind || o["metadata"].(map[string]any)["name"] != tc.name {
					continue
				}
				text := marshalJSON(o)
				for _, want := range tc.contains {
					if !strings.Contains(text, want) {
						t.Errorf("no %s in %s", want, text)
					}
				}
				if tc.lacks != "" && strings.Contains(text, tc.lacks) {
					t.Errorf("%s in %s", tc.lacks, text)
				}
				return
			}
			t.Errorf("no %s %s is rendered", tc.kind, tc.name)
		})
	}
}

// Without definitions there is none in the chart.
func TestWithoutDefinitions(t *testing.T) {
	for id := range mustRender(t, loadChart(t), "x", map[string]any{"crds": map[string]any{"install": false}, "clusterAPI": map[string]any{"enabled": true}}) {
		if strings.Contains(id, "CustomResourceDefinition") {
			t.Errorf("%s is rendered", id)
		}
	}
}

package v1beta1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/manifests"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/kube/schema"
)

// TestManifests accepts every object of ours that the documentation and the examples show.
func TestManifests(t *testing.T) {
	kinds := loadKinds(t)
	seen := 0
	for _, file := range shown(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if strings.HasSuffix(file, ".md") {
			text = fenced(text)
		}
		for i, doc := range strings.Split("\n"+text, "\n---") {
			obj := map[string]any{}
			if err := yaml.Unmarshal([]byte(doc), &obj); err != nil {
				t.Fatalf("%s, object %d: %v", file, i, err)
			}
			k, ok := kinds[fmt.Sprint(obj["kind"])]
			if !ok || obj["apiVersion"] != k.apiVersion {
				continue
			}
			seen++
			whole, err := wholeNumbers(obj)
			if err != nil {
				t.Fatal(err)
			}
			if errs := k.admit(t, whole, nil); len(errs) > 0 {
				t.Errorf("%s, object %d: %v", file, i, errs)
			}
		}
	}
	if seen < 14 {
		t.Errorf("only %d objects found in documentation and examples", seen)
	}
}

// shown lists the files that show objects to users.
func shown(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, dir := range []string{"docs", "manifests/examples", "test/e2e/testdata"} {
		root := filepath.Join("../../../..", dir)
		err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if ext := filepath.Ext(path); ext == ".md" || ext == ".yaml" {
				files = append(files, path)
			}
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return files
}

// fenced gives the YAML blocks of a Markdown text as documents.
func fenced(text string) string {
	var docs []string
	for i, part := range strings.Split(text, "```") {
		if yaml, ok := strings.CutPrefix(part, "yaml\n"); i%2 == 1 && ok && strings.HasPrefix(yaml, "apiVersion:") {
			docs = append(docs, yaml)
		}
	}
	return strings.Join(docs, "\n---\n")
}

// wholeNumbers gives obj with whole numbers as integers, as kube-apiserver reads them.
func wholeNumbers(obj map[string]any) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, utiljson.Unmarshal(data, &out)
}

// TestDefinitions checks the definitions as kube-apiserver does when they are created, cost limits of CEL included.
func TestDefinitions(t *testing.T) {
	for name, k := range loadKinds(t) {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			internal, err := k.Internal()
			if err != nil {
				t.Fatal(err)
			}
			if errs := crdvalidation.ValidateCustomResourceDefinition(ctx, internal); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
			// kubectl apply keeps a copy of what was applied in an annotation, which is limited to 256 KiB.
			if size := len(k.json); size > 200<<10 {
				t.Errorf("the definition has %d bytes, more than kubectl apply takes", size)
			}
		})
	}
}

// stateless is the kind without a status: nothing is observed of a grant.
const stateless = "ZoneGrant"

// TestDescriptions makes sure that kubectl explain has something to say about every field of our own.
func TestDescriptions(t *testing.T) {
	for name, k := range loadKinds(t) {
		t.Run(name, func(t *testing.T) {
			for _, part := range []string{"spec", "status"} {
				if part == "status" && name == stateless {
					continue
				}
				s := k.Definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[part]
				checkDescriptions(t, part, &s)
			}
		})
	}
}

func checkDescriptions(t *testing.T, path string, s *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	if s.Description == "" && !strings.HasSuffix(path, "[]") {
		t.Errorf("%s has no description", path)
	}
	switch path[strings.LastIndex(path, ".")+1:] {
	case "volumes", "volumeMounts", "envVars", "resources", "serviceSpec", "emptyDir", "persistentVolume", "affinity", "tolerations":
		return
	}
	if strings.HasSuffix(path, "service.spec") {
		return
	}
	for name, p := range s.Properties {
		checkDescriptions(t, path+"."+name, &p)
	}
	if s.Items != nil {
		checkDescriptions(t, path+"[]", s.Items.Schema)
	}
}

// TestNames pins what users type and read: plural, short names, categories, scope and columns.
func TestNames(t *testing.T) {
	type names struct {
		Plural, Short, Scope, Columns string
	}
	record := func(columns string) string { return "Name Zone " + columns + "TTL Ready Age" }
	cluster := "Version Primary Secondary Ready Age"
	want := map[string]names{
		"DNSZone":              {"dnszones", "zone zones dz dzs", "Namespaced", "Zone Provider Records Instances TTL Ready Age"},
		"ARecord":              {"arecords", "a", "Namespaced", record("Addresses ")},
		"AAAARecord":           {"aaaarecords", "aaaa", "Namespaced", record("Addresses ")},
		"CNAMERecord":          {"cnamerecords", "cname", "Namespaced", record("Target ")},
		"NSRecord":             {"nsrecords", "", "Namespaced", record("Nameserver ")},
		"TXTRecord":            {"txtrecords", "txt", "Namespaced", record("")},
		"MXRecord":             {"mxrecords", "mx", "Namespaced", record("Priority Mail Server ")},
		"SRVRecord":            {"srvrecords", "srv", "Namespaced", record("Target Port ")},
		"CAARecord":            {"caarecords", "caa", "Namespaced", record("Tag Value ")},
		"PTRRecord":            {"ptrrecords", "ptr", "Namespaced", record("Target ")},
		"DNSRecord":            {"dnsrecords", "rr", "Namespaced", record("Type Data ")},
		"Bind9Instance":        {"bind9instances", "b9 b9s", "Namespaced", "Cluster Role Replicas Zones Ready Age"},
		"Bind9Cluster":         {"bind9clusters", "b9c b9cs", "Namespaced", cluster},
		"Bind9GlobalCluster":   {"bind9globalclusters", "b9gc", "Cluster", cluster},
		"ClusterBind9Provider": {"clusterbind9providers", "cb9p cb9ps", "Cluster", cluster},
		"DNSEndpoint":          {"dnsendpoints", "", "Namespaced", "Accepted Programmed Ready Last sync Age"},
		"ZoneGrant":            {"zonegrants", "zg", "Cluster", "Suffixes Namespaces Age"},
		"DNSProvider":          {"dnsproviders", "dnsp dnsps", "Namespaced", "Type Zones Ready Reason Age"},
	}
	got := map[string]names{}
	for name, k := range loadKinds(t) {
		spec := k.Definition.Spec
		var columns []string
		for _, c := range spec.Versions[0].AdditionalPrinterColumns {
			columns = append(columns, c.Name)
		}
		got[name] = names{spec.Names.Plural, strings.Join(spec.Names.ShortNames, " "), string(spec.Scope), strings.Join(columns, " ")}
		if diff := cmp.Diff([]string{"dns"}, spec.Names.Categories); diff != "" {
			t.Errorf("categories of %s: %s", name, diff)
		}
		if name == stateless {
			continue
		}
		if spec.Versions[0].Subresources == nil || spec.Versions[0].Subresources.Status == nil {
			t.Errorf("%s has no status subresource", name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, k := range v1beta1.RecordKinds {
		if got[k.Kind].Plural != k.Resource {
			t.Errorf("RecordKinds names %s as resource of %s", k.Resource, k.Kind)
		}
	}
}

// kind is a definition with its text.
type kind struct {
	*schema.Kind
	apiVersion string
	json       []byte
}

func loadKinds(t *testing.T) map[string]*kind {
	t.Helper()
	loaded, err := schema.Load(manifests.Definitions())
	if err != nil || len(loaded) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	kinds := map[string]*kind{}
	for gvk, k := range loaded {
		text, err := fs.ReadFile(manifests.Definitions(), gvk.Group+"_"+k.Definition.Spec.Names.Plural+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		data, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		kinds[gvk.Kind] = &kind{Kind: k, apiVersion: gvk.GroupVersion().String(), json: data}
	}
	return kinds
}

// admit is Admit for a definition that can be used.
func (k *kind) admit(t *testing.T, obj, old map[string]any) field.ErrorList {
	t.Helper()
	errs, err := k.Admit(t.Context(), obj, old)
	if err != nil {
		t.Fatal(err)
	}
	return errs
}

// What is in zones under the name of an owner is not given up by a change of the provider.
func TestOwnershipOfValues(t *testing.T) {
	k := loadKinds(t)["DNSProvider"]
	provider := func(fields ...string) map[string]any {
		spec := map[string]any{
			"primaries": []any{map[string]any{"address": "192.0.2.1"}},
			"updateKey": map[string]any{"secretRef": map[string]any{"name": "key"}},
		}
		for _, f := range fields {
			name, value, _ := strings.Cut(f, "=")
			spec[name] = value
		}
		return map[string]any{
			"apiVersion": v1beta1.GroupVersion.String(), "kind": "DNSProvider", "metadata": map[string]any{"name": "corp", "namespace": "dns"},
			"spec": map[string]any{"rfc2136": spec},
		}
	}
	shared, values := provider("writers=Shared"), provider("writers=Shared", "ownership=Values", "ownerID=a")
	for name, test := range map[string]struct {
		is, was map[string]any
		refused bool
	}{
		"values":               {is: values},
		"without an ID":        {is: provider("writers=Shared", "ownership=Values")},
		"exclusive":            {is: provider("ownership=Values"), refused: true},
		"by query":             {is: provider("writers=Shared", "ownership=Values", "readBy=Query"), refused: true},
		"an ID for names":      {is: provider("writers=Shared", "ownerID=a"), refused: true},
		"an ID with a slash":   {is: provider("writers=Shared", "ownership=Values", "ownerID=a/b"), refused: true},
		"names become values":  {is: values, was: shared},
		"values stay":          {is: values, was: values},
		"values become names":  {is: shared, was: values, refused: true},
		"another ID":           {is: provider("writers=Shared", "ownership=Values", "ownerID=b"), was: values, refused: true},
		"no ID":                {is: provider("writers=Shared", "ownership=Values"), was: values, refused: true},
		"an ID where was none": {is: values, was: provider("writers=Shared", "ownership=Values"), refused: true},
		"another field":        {is: provider("writers=Shared", "ownership=Values", "ownerID=a", "readBy=Transfer"), was: values},
	} {
		if errs := k.admit(t, test.is, test.was); (len(errs) > 0) != test.refused {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

package v1beta1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/schematest"
)

const crdFolder = "../../../../manifests/crds"

// TestSchemas puts every case through what kube-apiserver does with a custom resource: unknown fields, defaults, the
// schema and the CEL rules.
func TestSchemas(t *testing.T) {
	kinds := loadKinds(t)
	cases, err := schematest.Load("testdata/schema")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			k, ok := kinds[c.Kind]
			if !ok {
				t.Fatalf("no CustomResourceDefinition for kind %q", c.Kind)
			}
			checkCase(t, k, c)
		})
	}
}

func checkCase(t *testing.T, k *kind, c schematest.Case) {
	t.Helper()
	var old map[string]any
	if c.OldSpec != nil {
		old = c.Object(k.apiVersion, "default", c.OldSpec).Object
		if errs := k.admit(old, nil); len(errs) > 0 {
			t.Fatalf("oldSpec is refused: %v", errs)
		}
	}
	obj := c.Object(k.apiVersion, "default", runtime.DeepCopyJSON(c.Spec)).Object
	errs := k.admit(obj, old)
	switch {
	case len(c.Refused) == 0 && len(errs) > 0:
		t.Fatalf("refused: %v", errs)
	case len(c.Refused) > 0 && len(errs) == 0:
		t.Fatalf("accepted, want it refused with %q", c.Refused)
	}
	if len(errs) > 0 {
		if missing := schematest.Missing(errs.ToAggregate().Error(), c.Refused); len(missing) > 0 {
			t.Errorf("the refusal does not say %q:\n%v", missing, errs)
		}
		return
	}
	if diffs := schematest.Differences("spec", c.Stored, obj["spec"].(map[string]any)); len(diffs) > 0 {
		t.Errorf("stored: %s", strings.Join(diffs, "; "))
	}
}

// TestManifests accepts every object of ours that the documentation and the examples show.
func TestManifests(t *testing.T) {
	kinds := loadKinds(t)
	seen := 0
	for _, file := range manifests(t) {
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
			if errs := k.admit(whole, nil); len(errs) > 0 {
				t.Errorf("%s, object %d: %v", file, i, errs)
			}
		}
	}
	if seen < 14 {
		t.Errorf("only %d objects found in documentation and examples", seen)
	}
}

// manifests lists the files that show objects to users.
func manifests(t *testing.T) []string {
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
			if errs := crdvalidation.ValidateCustomResourceDefinition(ctx, k.internal); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
			// kubectl apply keeps a copy of what was applied in an annotation, which is limited to 256 KiB.
			if size := len(k.json); size > 200<<10 {
				t.Errorf("the definition has %d bytes, more than kubectl apply takes", size)
			}
		})
	}
}

// TestDescriptions makes sure that kubectl explain has something to say about every field of our own.
func TestDescriptions(t *testing.T) {
	for name, k := range loadKinds(t) {
		t.Run(name, func(t *testing.T) {
			for _, part := range []string{"spec", "status"} {
				s := k.v1.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[part]
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
	case "volumes", "volumeMounts", "envVars", "resources", "serviceSpec", "emptyDir", "persistentVolume":
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
		"NSRecord":             {"nsrecords", "ns", "Namespaced", record("Nameserver ")},
		"TXTRecord":            {"txtrecords", "txt", "Namespaced", record("")},
		"MXRecord":             {"mxrecords", "mx", "Namespaced", record("Priority Mail Server ")},
		"SRVRecord":            {"srvrecords", "srv", "Namespaced", record("Target Port ")},
		"CAARecord":            {"caarecords", "caa", "Namespaced", record("Tag Value ")},
		"Bind9Instance":        {"bind9instances", "b9 b9s", "Namespaced", "Cluster Role Replicas Zones Ready Age"},
		"Bind9Cluster":         {"bind9clusters", "b9c b9cs", "Namespaced", cluster},
		"Bind9GlobalCluster":   {"bind9globalclusters", "b9gc", "Cluster", cluster},
		"ClusterBind9Provider": {"clusterbind9providers", "cb9p cb9ps", "Cluster", cluster},
		"DNSEndpoint":          {"dnsendpoints", "", "Namespaced", "Accepted Programmed Age"},
	}
	got := map[string]names{}
	for name, k := range loadKinds(t) {
		spec := k.v1.Spec
		var columns []string
		for _, c := range spec.Versions[0].AdditionalPrinterColumns {
			columns = append(columns, c.Name)
		}
		got[name] = names{spec.Names.Plural, strings.Join(spec.Names.ShortNames, " "), string(spec.Scope), strings.Join(columns, " ")}
		if diff := cmp.Diff([]string{"dns"}, spec.Names.Categories); diff != "" {
			t.Errorf("categories of %s: %s", name, diff)
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

// kind is what kube-apiserver makes of one CustomResourceDefinition.
type kind struct {
	apiVersion string
	json       []byte
	v1         *apiextensionsv1.CustomResourceDefinition
	internal   *apiextensions.CustomResourceDefinition
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

func loadKinds(t *testing.T) map[string]*kind {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crdFolder, "*_*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions in %s: %v", crdFolder, err)
	}
	kinds := map[string]*kind{}
	for _, file := range files {
		k, err := loadKind(file)
		if err != nil {
			t.Fatalf("%s: %v", filepath.Base(file), err)
		}
		kinds[k.v1.Spec.Names.Kind] = k
	}
	return kinds
}

func loadKind(file string) (*kind, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	k := &kind{v1: &apiextensionsv1.CustomResourceDefinition{}, internal: &apiextensions.CustomResourceDefinition{}}
	if err := yaml.UnmarshalStrict(data, k.v1); err != nil {
		return nil, err
	}
	if k.json, err = yaml.YAMLToJSON(data); err != nil {
		return nil, err
	}
	version := k.v1.Spec.Versions[0]
	k.apiVersion = k.v1.Spec.Group + "/" + version.Name
	defaulted := k.v1.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(defaulted)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&defaulted.Spec)
	defaulted.Status.StoredVersions = []string{version.Name}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(defaulted, k.internal, nil); err != nil {
		return nil, err
	}
	schema := k.internal.Spec.Versions[0].Schema
	if schema == nil {
		schema = k.internal.Spec.Validation
	}
	if k.structural, err = structuralschema.NewStructural(schema.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	if k.schema, _, err = validation.NewSchemaValidator(schema.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	k.rules = cel.NewValidator(k.structural, true, celconfig.PerCallLimit)
	return k, nil
}

// admit does to obj what kube-apiserver does on a create, or on an update of old: it fills in defaults, and tells what
// is wrong. Unknown fields count as wrong, because kubectl asks for strict validation.
func (k *kind) admit(obj, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	unknown := pruning.PruneWithOptions(obj, k.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		errs = append(errs, field.Invalid(field.NewPath(path), "", "unknown field"))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, k.structural)
	defaulting.Default(obj, k.structural)
	var oldObj any
	if old == nil {
		errs = append(errs, validation.ValidateCustomResource(nil, obj, k.schema)...)
	} else {
		oldObj = old
		errs = append(errs, validation.ValidateCustomResourceUpdate(nil, obj, old, k.schema)...)
	}
	for _, err := range errs {
		if err.Type == field.ErrorTypeRequired || err.Type == field.ErrorTypeTooLong || err.Type == field.ErrorTypeTooMany || err.Type == field.ErrorTypeTypeInvalid {
			return errs // the rules are not evaluated on what has not even the right shape
		}
	}
	broken, _ := k.rules.Validate(context.Background(), nil, k.structural, obj, oldObj, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

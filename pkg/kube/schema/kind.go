package schema

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/pkg/kube/spelling"
)

// Kinds are the kinds of the definitions that were loaded.
type Kinds map[runtimeschema.GroupVersionKind]*Kind

// Kind is a kind with its definition.
type Kind struct {
	// Definition is the CustomResourceDefinition as it is in its file.
	Definition *apiextensionsv1.CustomResourceDefinition
	// rules compiles schema and CEL on first use: that takes longer than all the rest.
	rules func() (*kindRules, error)
}

// kindRules are the rules for objects of a kind.
type kindRules struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	cel        *cel.Validator
}

// Load reads the definitions in the YAML files at the top level of a folder, one in each.
func Load(files fs.FS) (Kinds, error) {
	names, err := fs.Glob(files, "*_*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing definitions: %w", err)
	}
	kinds := Kinds{}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading a definition: %w", err)
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, definition); err != nil {
			return nil, fmt.Errorf("reading definition %s: %w", name, err)
		}
		kind := &Kind{Definition: definition}
		kind.rules = sync.OnceValues(kind.compileRules)
		kinds[kind.GroupVersionKind()] = kind
	}
	return kinds, nil
}

// GroupVersionKind is the kind's full name.
func (k *Kind) GroupVersionKind() runtimeschema.GroupVersionKind {
	spec := k.Definition.Spec
	return runtimeschema.GroupVersionKind{Group: spec.Group, Version: spec.Versions[0].Name, Kind: spec.Names.Kind}
}

// Namespaced is false for cluster-scoped kinds.
func (k *Kind) Namespaced() bool { return k.Definition.Spec.Scope == apiextensionsv1.NamespaceScoped }

// Internal converts the definition to kube-apiserver's internal form, with its defaults.
func (k *Kind) Internal() (*apiextensions.CustomResourceDefinition, error) {
	defaulted := k.Definition.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(defaulted)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&defaulted.Spec)
	defaulted.Status.StoredVersions = []string{k.GroupVersionKind().Version}
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(defaulted, internal, nil); err != nil {
		return nil, fmt.Errorf("converting definition %s: %w", k.Definition.Name, err)
	}
	return internal, nil
}

func (k *Kind) compileRules() (*kindRules, error) {
	internal, err := k.Internal()
	if err != nil {
		return nil, err
	}
	definition := internal.Spec.Versions[0].Schema
	if definition == nil {
		definition = internal.Spec.Validation
	}
	r := &kindRules{}
	if r.structural, err = structuralschema.NewStructural(definition.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", k.Definition.Name, err)
	}
	if r.schema, _, err = validation.NewSchemaValidator(definition.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("compiling the schema of %s: %w", k.Definition.Name, err)
	}
	r.cel = cel.NewValidator(r.structural, true, celconfig.PerCallLimit)
	return r, nil
}

// Admit processes an object as kube-apiserver does on creation, or on an update of old: it sets defaults and returns what is
// invalid. Unknown fields are invalid, as with kubectl's strict validation, and are removed. Whole numbers are int64. An
// error means that the definition itself cannot be used.
func (k *Kind) Admit(ctx context.Context, obj, old map[string]any) (field.ErrorList, error) {
	r, err := k.rules()
	if err != nil {
		return nil, err
	}
	problems := r.checkShape(obj, old)
	if len(problems) > 1 { // A number of the wrong type is named twice, once without a place.
		problems = slices.DeleteFunc(problems, func(e *field.Error) bool { return e.Field == (*field.Path)(nil).String() })
	}
	for _, problem := range problems {
		switch problem.Type {
		case field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return problems, nil // CEL rules are only evaluated on objects with the right structure.
		default:
		}
	}
	problems = append(problems, r.duplicates(obj, old)...)
	var before any
	if old != nil {
		before = old
	}
	broken, _ := r.cel.Validate(ctx, nil, r.structural, obj, before, celconfig.RuntimeCELCostBudget)
	return append(problems, broken...), nil
}

// checkShape removes unknown fields, sets defaults, and validates the schema without its CEL rules.
func (r *kindRules) checkShape(obj, old map[string]any) field.ErrorList {
	var problems field.ErrorList
	_, _, unknown, err := objectmeta.GetObjectMetaWithOptions(obj, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		problems = append(problems, field.Invalid(field.NewPath("metadata"), field.OmitValueType{}, err.Error()))
	}
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range append(unknown, pruning.PruneWithOptions(obj, r.structural, true, options)...) {
		problems = append(problems, &field.Error{Type: field.ErrorTypeInvalid, Field: path, BadValue: field.OmitValueType{}, Detail: "unknown field" + r.meantField(path)})
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, r.structural)
	defaulting.Default(obj, r.structural)
	if old == nil {
		return append(problems, validation.ValidateCustomResource(nil, obj, r.schema)...)
	}
	return append(problems, validation.ValidateCustomResourceUpdate(nil, obj, old, r.schema)...)
}

// duplicates finds values that a list has twice and may have once. What was so before an update may stay.
func (r *kindRules) duplicates(obj, old map[string]any) field.ErrorList {
	if len(listtype.ValidateListSetsAndMaps(nil, r.structural, old)) > 0 {
		return nil
	}
	problems := listtype.ValidateListSetsAndMaps(nil, r.structural, obj)
	slices.SortStableFunc(problems, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return problems
}

// metadataFields are those that people write.
var metadataFields = []string{"annotations", "finalizers", "generateName", "labels", "name", "namespace", "ownerReferences"}

// meantField says which field an unknown one was probably meant to be: one that is written almost like it, the labels of a selector,
// or the selector around it.
func (r *kindRules) meantField(path string) string {
	parent := r.structural
	steps := strings.Split(path, ".")
	name := steps[len(steps)-1]
	if steps[0] == "metadata" && len(steps) == 2 { //nolint:mnd // directly in it
		return adviseField(name, metadataFields)
	}
	for _, step := range steps[:len(steps)-1] {
		name, index, _ := strings.Cut(step, "[")
		below, known := parent.Properties[name]
		if !known {
			return ""
		}
		parent = &below
		for range strings.Count(index, "]") {
			if parent.Items == nil {
				return ""
			}
			parent = parent.Items
		}
	}
	if advice := adviseField(name, slices.Collect(maps.Keys(parent.Properties))); advice != "" {
		return advice
	}
	if _, selector := parent.Properties["matchLabels"]; selector {
		return "; labels belong in matchLabels"
	}
	if selector, has := parent.Properties["selector"]; has && selector.Properties[name].Type != "" {
		return "; it belongs in selector"
	}
	return ""
}

func adviseField(name string, known []string) string {
	if meant := spelling.Nearest(name, known...); meant != "" {
		return "; write " + meant
	}
	return ""
}

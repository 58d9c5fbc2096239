package offline

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-dns/lockstep/pkg/kube/manifest"
	"github.com/lockstep-dns/lockstep/pkg/kube/schema"
)

// checkMetadata checks metadata whose types are right.
func (r *checkRun) checkMetadata(o manifest.Object, kind *schema.Kind) {
	path := field.NewPath("metadata")
	problems := validation.ValidateObjectMetaAccessor(&o.Unstructured, kind.Namespaced(), validation.NameIsDNSSubdomain, path)
	if o.GetName() == "" && o.GetGenerateName() != "" {
		problems = slices.DeleteFunc(problems, func(e *field.Error) bool { return e.Field == "metadata.name" && e.Type == field.ErrorTypeRequired })
		problems = append(problems, field.Forbidden(path.Child("generateName"), "what is applied has a name of its own: set metadata.name"))
	}
	r.addProblems(o, "metadata", problems)
}

// checkMetadataTypes finds metadata that kubectl cannot decode, such as numbers and booleans that are not quoted.
func checkMetadataTypes(object map[string]any) (problems field.ErrorList) {
	path := field.NewPath("metadata")
	metadata, isMap := object["metadata"].(map[string]any)
	if !isMap && object["metadata"] != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be a map, with a name")}
	}
	wantText := func(path *field.Path, value any) {
		if _, isText := value.(string); !isText && value != nil {
			problems = append(problems, field.Invalid(path, value, "must be a string: put it in quotes"))
		}
	}
	for _, name := range []string{"name", "generateName", "namespace"} {
		wantText(path.Child(name), metadata[name])
	}
	for _, name := range []string{"labels", "annotations"} {
		values, isMap := metadata[name].(map[string]any)
		if !isMap && metadata[name] != nil {
			problems = append(problems, field.Invalid(path.Child(name), field.OmitValueType{}, "must be a map of strings"))
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			wantText(path.Child(name).Key(key), values[key])
		}
	}
	finalizers, isList := metadata["finalizers"].([]any)
	if !isList && metadata["finalizers"] != nil {
		problems = append(problems, field.Invalid(path.Child("finalizers"), field.OmitValueType{}, "must be a list of strings"))
	}
	for i, value := range finalizers {
		wantText(path.Child("finalizers").Index(i), value)
	}
	return problems
}

package offline

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// nullFields returns the paths of a part of an object that hold null, as an unquoted NULL does in YAML.
func nullFields(path *field.Path, value any, found map[string]bool) map[string]bool {
	switch v := value.(type) {
	case nil:
		found[path.String()] = true
	case map[string]any:
		for key, below := range v {
			nullFields(path.Child(key), below, found)
		}
	case []any:
		for i, below := range v {
			nullFields(path.Index(i), below, found)
		}
	}
	return found
}

// adviseQuotes says of values that YAML takes for something else than the field has, such as 10, y and NULL, what to do. isEmpty reports whether
// nothing at all is written for a field.
func adviseQuotes(problems field.ErrorList, nulls map[string]bool, isEmpty func(field string) bool) field.ErrorList {
	for _, problem := range problems {
		is := fmt.Sprint(problem.BadValue)
		if name, spelling := asciiSpelling(problem.BadValue); spelling != "" && strings.Contains(problem.Detail, "labels of 1 to 63") {
			problem.Detail = fmt.Sprintf("%s; %q is %q in DNS (RFC 5891)", problem.Detail, name, spelling)
		}
		composed := is == "object" || is == "array"
		switch {
		case problem.Type == field.ErrorTypeRequired && isEmpty(problem.Field):
			problem.Detail = strings.TrimPrefix(problem.Detail+"; nothing is written here: indent what belongs to it", "; ")
		case problem.Type == field.ErrorTypeRequired && nulls[problem.Field]:
			problem.Detail = strings.TrimPrefix(problem.Detail+"; YAML takes an unquoted NULL, null or ~ for no value: put it in quotes", "; ")
		case problem.Type == field.ErrorTypeInvalid && strings.HasPrefix(problem.Detail, "unknown field") && (problem.Field == "spec.zoneRef" || problem.Field == "spec.zone"):
			problem.Detail += "; a record names no zone: the zone selects it by its labels (recordsFrom)"
		case strings.Contains(problem.Detail, "must be of type string") && composed:
			problem.Detail += "; write a text"
		case strings.Contains(problem.Detail, "must be of type string"):
			problem.Detail += fmt.Sprintf("; YAML takes it for %s: put it in quotes", is)
		case strings.Contains(problem.Detail, "must be of type array") && is == "object":
			problem.Detail += `; write a list: begin each entry with "- "`
		case strings.Contains(problem.Detail, "must be of type object") && !composed:
			problem.Detail += "; write a map of its fields, such as {name: a}"
		case strings.Contains(problem.Detail, "must be of type array"):
			problem.Detail += `; write a list, such as ["a", "b"]`
		case strings.Contains(problem.Detail, "must be of type integer") && is == "string":
			problem.Detail += "; write a whole number without quotes and units"
		}
	}
	return problems
}

// asciiSpelling is the form in DNS of a name with letters of other scripts; empty if it has none.
func asciiSpelling(value any) (name, spelling string) {
	name, _ = value.(string)
	if strings.IndexFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		return name, ""
	}
	spelling, err := idna.New(idna.MapForLookup(), idna.StrictDomainName(false)).ToASCII(name)
	if err != nil {
		return name, ""
	}
	return name, spelling
}

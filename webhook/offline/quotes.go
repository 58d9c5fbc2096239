package offline

import (
	"fmt"
	"strings"

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

// adviseQuotes says of values that YAML takes for no text, such as 10, y and NULL, what to do.
func adviseQuotes(problems field.ErrorList, nulls map[string]bool) field.ErrorList {
	for _, problem := range problems {
		switch {
		case problem.Type == field.ErrorTypeRequired && nulls[problem.Field]:
			problem.Detail = strings.TrimPrefix(problem.Detail+"; YAML takes an unquoted NULL, null or ~ for no value: put it in quotes", "; ")
		case strings.Contains(problem.Detail, "must be of type string"):
			problem.Detail += fmt.Sprintf("; YAML takes it for %v: put it in quotes", problem.BadValue)
		}
	}
	return problems
}

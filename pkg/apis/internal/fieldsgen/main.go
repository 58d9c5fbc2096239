// Command fieldsgen writes the reference of all fields and columns, docs/reference/fields.md, from the CustomResourceDefinitions:
//
//	go run ./pkg/apis/internal/fieldsgen -out docs/reference/fields.md manifests/crds manifests/components/cluster-api/crds
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	out := flag.String("out", "", "file to write")
	flag.Parse()
	text, err := generate(flag.Args())
	if err == nil {
		err = os.WriteFile(*out, text, 0o644) //nolint:gosec // documentation
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fieldsgen:", err)
		os.Exit(1)
	}
}

const head = `# Fields and columns of every kind

For users. Generated from the CustomResourceDefinitions by ` + "`make generate`" + `. [API reference](api.md) explains the fields and has examples; this page is complete.
A star marks what is required. ` + "`[]`" + ` stands for each element of a list, ` + "`{}`" + ` for each value of a map.
`

// generate writes the page about the definitions in some folders.
func generate(folders []string) ([]byte, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*_*.yaml"))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("%s has no definitions: %w", folder, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(text, crd); err != nil {
				return nil, fmt.Errorf("reading %s: %w", file, err)
			}
			all = append(all, crd)
		}
	}
	slices.SortFunc(all, func(a, b *apiextensionsv1.CustomResourceDefinition) int {
		return cmp.Compare(a.Spec.Names.Kind, b.Spec.Names.Kind)
	})
	p := &page{described: map[string]string{}}
	fmt.Fprint(p, head)
	for _, crd := range all {
		for _, version := range crd.Spec.Versions {
			p.writeKind(crd, version)
		}
	}
	return p.Bytes(), nil
}

// page is the page as far as it is written.
type page struct {
	bytes.Buffer
	kind string
	// described are the structures that have been written, with the place of each.
	described map[string]string
}

func (p *page) writeKind(crd *apiextensionsv1.CustomResourceDefinition, version apiextensionsv1.CustomResourceDefinitionVersion) {
	names, short := crd.Spec.Names, ""
	p.kind = names.Kind
	if len(names.ShortNames) > 0 {
		short = ", short " + code(strings.Join(names.ShortNames, "`, `"))
	}
	fmt.Fprintf(p, "\n## %s\n\n%s, %s, %s%s\n", names.Kind, code(crd.Spec.Group+"/"+version.Name), strings.ToLower(string(crd.Spec.Scope)), code(names.Plural), short)
	fmt.Fprint(p, "\n| column | type | field |\n|---|---|---|\n")
	for _, c := range version.AdditionalPrinterColumns {
		wide := ""
		if c.Priority > 0 {
			wide = " (`-o wide`)"
		}
		fmt.Fprintf(p, "| %s%s | %s | %s |\n", c.Name, wide, c.Type, code(strings.ReplaceAll(c.JSONPath, "|", `\|`)))
	}
	fmt.Fprint(p, "\n| field | type | |\n|---|---|---|\n")
	for _, part := range []string{"spec", "status"} {
		schema, ok := version.Schema.OpenAPIV3Schema.Properties[part]
		if !ok {
			continue
		}
		if see := p.elsewhere(part, schema); see != "" {
			fmt.Fprintf(p, "| %s | object | %s |\n", code(part), strings.TrimSpace(see))
			continue
		}
		p.writeFields(part, schema)
	}
}

// writeFields writes a row for each field below a path.
func (p *page) writeFields(path string, schema apiextensionsv1.JSONSchemaProps) {
	path, schema = elements(path, schema)
	for _, name := range sortedNames(schema.Properties) {
		field := schema.Properties[name]
		star := ""
		if slices.Contains(schema.Required, name) {
			star = "*"
		}
		see := p.elsewhere(path+"."+name, field)
		fmt.Fprintf(p, "| %s%s | %s | %s |\n", code(path+"."+name), star, typeOf(field), strings.TrimSpace(sentence(field.Description)+see))
		if see == "" {
			p.writeFields(path+"."+name, field)
		}
	}
}

// elsewhere says where the fields of a structure are described, if they are: in Kubernetes, or above.
func (p *page) elsewhere(path string, field apiextensionsv1.JSONSchemaProps) string {
	_, inner := elements(path, field)
	switch fields := inner.Properties; {
	case len(fields) == 0:
		return ""
	case strings.HasSuffix(path, ".conditions"):
		return " Fields: those of Kubernetes' conditions."
	case !slices.ContainsFunc(sortedNames(fields), func(name string) bool { return fields[name].Description != "" }):
		return " Fields: those of Kubernetes." // crdgen leaves them without descriptions.
	}
	inner.Description = ""
	key, _ := yaml.Marshal(inner)
	if place := p.described[string(key)]; place != "" && len(key) > 1000 {
		return " Fields: as in " + place + "."
	}
	p.described[string(key)] = fmt.Sprintf("%s of [%s](#%s)", code(path), p.kind, strings.ToLower(p.kind))
	return ""
}

// elements descends from lists and maps to the structure of their elements, and to its path.
func elements(path string, schema apiextensionsv1.JSONSchemaProps) (string, apiextensionsv1.JSONSchemaProps) {
	for {
		switch {
		case schema.Items != nil && schema.Items.Schema != nil:
			path, schema = path+"[]", *schema.Items.Schema
		case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
			path, schema = path+"{}", *schema.AdditionalProperties.Schema
		default:
			return path, schema
		}
	}
}

func sortedNames(fields map[string]apiextensionsv1.JSONSchemaProps) []string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// typeOf describes the type of a field, what it may be, and its default.
func typeOf(field apiextensionsv1.JSONSchemaProps) string {
	text := cmp.Or(field.Type, "any")
	switch {
	case field.XIntOrString:
		text = "integer or string"
	case field.Items != nil && field.Items.Schema != nil:
		text = "list of " + typeOf(*field.Items.Schema)
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		text = "map of " + typeOf(*field.AdditionalProperties.Schema)
	}
	if len(field.Enum) > 0 {
		values := make([]string, len(field.Enum))
		for i, value := range field.Enum {
			values[i] = code(strings.Trim(string(value.Raw), `"`))
		}
		text += ": " + strings.Join(values, ", ")
	}
	if field.Minimum != nil && field.Maximum != nil && *field.Maximum < math.MaxInt32 { // A type's own limits say nothing.
		text += fmt.Sprintf(", %s to %s", number(*field.Minimum), number(*field.Maximum))
	}
	if field.Default != nil && field.Type != "object" {
		text += ", default " + code(string(field.Default.Raw))
	}
	return text
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func code(text string) string { return "`" + text + "`" }

// sentence puts a description on one line of a table.
func sentence(description string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(strings.Join(strings.Fields(description), " "))
}

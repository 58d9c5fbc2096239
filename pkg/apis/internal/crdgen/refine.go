package main

import (
	"encoding/json"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// refineSchema adds to a schema, at every depth, what markers on the Go types cannot express, and adapts its descriptions
// to kubectl explain.
func refineSchema(s *apiextensionsv1.JSONSchemaProps) {
	limitToGoType(s)
	s.Description = joinLines(s.Description)
	if isSelector(s) {
		limitSelector(s)
		return
	}
	for name, p := range s.Properties {
		switch name {
		case "volumes", "volumeMounts", "envVars", "resources", "serviceSpec", "emptyDir", "persistentVolume", "affinity", "tolerations":
			refineEmbedded(&p, true)
		case "service":
			spec, embedded := p.Properties["spec"]
			if !embedded {
				refineSchema(&p)
				break
			}
			refineEmbedded(&spec, true)
			p.Properties["spec"] = spec
		case "nameServerIps":
			p.AdditionalProperties.Schema.MaxLength = new(int64(45))
		default:
			refineSchema(&p)
		}
		p.Description = startWith(name, p.Description)
		s.Properties[name] = p
	}
	if s.Items != nil {
		refineSchema(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		refineSchema(s.AdditionalProperties.Schema)
	}
}

// joinLines joins the lines of each paragraph, because kubectl explain wraps text itself.
func joinLines(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.Join(paragraphs, "\n\n")
}

// startWith replaces the Go field's name at the start of a description with the name of the JSON field.
func startWith(name, description string) string {
	if first, rest, ok := strings.Cut(description, " "); ok && strings.EqualFold(first, name) {
		return name + " " + rest
	}
	return description
}

// refineEmbedded limits a type of Kubernetes' own, at every depth, to what its Go type can hold, and removes the descriptions
// below s, and that of s itself unless it is the top one.
func refineEmbedded(s *apiextensionsv1.JSONSchemaProps, top bool) {
	limitToGoType(s)
	if !top {
		s.Description = ""
	}
	for name, p := range s.Properties {
		if name == "metadata" { // That of a volumeClaimTemplate, of which the generator leaves nothing.
			p.Properties = map[string]apiextensionsv1.JSONSchemaProps{"annotations": textMap(), "labels": textMap()}
		}
		refineEmbedded(&p, false)
		s.Properties[name] = p
	}
	if s.Items != nil {
		refineEmbedded(s.Items.Schema, false)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		refineEmbedded(s.AdditionalProperties.Schema, false)
	}
}

// textMap is the schema of annotations or labels.
func textMap() apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}}
}

func isSelector(s *apiextensionsv1.JSONSchemaProps) bool {
	_, labels := s.Properties["matchLabels"]
	_, expressions := s.Properties["matchExpressions"]
	return labels && expressions
}

const (
	// Label keys and values as in Kubernetes: an optional DNS prefix, then a name of at most 63 characters.
	namePart = `([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]`
	keyRule  = `^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?` + namePart + `$`
	valRule  = `^(` + namePart + `)?$`
)

// limitSelector adds limits to the lists of a LabelSelector, and rules that refuse a selector that can never match.
func limitSelector(s *apiextensionsv1.JSONSchemaProps) {
	labels := s.Properties["matchLabels"]
	labels.MaxProperties = new(int64(32))
	labels.AdditionalProperties.Schema.MaxLength = new(int64(63))
	labels.Description = "matchLabels are labels that must all be present with the given values."
	labels.XValidations = validationRules(
		`self.all(k, size(k) <= 317 && k.matches('`+keyRule+`'))`,
		`the keys of matchLabels must be label keys: a name of at most 63 letters, digits, "-", "_" and ".", optionally after a DNS prefix and "/"`,
		`self.all(k, self[k].matches('`+valRule+`'))`,
		`the values of matchLabels must be label values: at most 63 letters, digits, "-", "_" and "."`)
	s.Properties["matchLabels"] = labels

	expressions := s.Properties["matchExpressions"]
	expressions.MaxItems = new(int64(16))
	expressions.Description = "matchExpressions are requirements on labels; all of them must hold."
	limitRequirement(expressions.Items.Schema)
	s.Properties["matchExpressions"] = expressions
}

func limitRequirement(r *apiextensionsv1.JSONSchemaProps) {
	r.Description = "A requirement on one label."
	r.XValidations = validationRules(
		`!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)`,
		`operators In and NotIn need at least one entry in values`,
		`!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0`,
		`operators Exists and DoesNotExist take no values: remove values, or use In or NotIn`)

	key := r.Properties["key"]
	key.Description = "key of the label."
	key.MaxLength = new(int64(317))
	key.XValidations = validationRules(`self.matches('`+keyRule+`')`,
		`key must be a label key: a name of at most 63 letters, digits, "-", "_" and ".", optionally after a DNS prefix and "/"`)
	r.Properties["key"] = key

	operator := r.Properties["operator"]
	operator.Description = "operator is In, NotIn (which also holds when the label is missing), Exists or DoesNotExist."
	for _, o := range []string{"In", "NotIn", "Exists", "DoesNotExist"} {
		quoted, _ := json.Marshal(o) // a string always has a JSON form
		operator.Enum = append(operator.Enum, apiextensionsv1.JSON{Raw: quoted})
	}
	r.Properties["operator"] = operator

	values := r.Properties["values"]
	values.Description = "values of the label that In and NotIn compare with."
	values.MaxItems = new(int64(50))
	values.Items.Schema.MaxLength = new(int64(63))
	values.Items.Schema.XValidations = validationRules(`self.matches('`+valRule+`')`,
		`values must be label values: at most 63 letters, digits, "-", "_" and "."`)
	r.Properties["values"] = values
}

// validationRules pairs expressions with the messages that follow them.
func validationRules(pairs ...string) apiextensionsv1.ValidationRules {
	var out apiextensionsv1.ValidationRules
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, apiextensionsv1.ValidationRule{Rule: pairs[i], Message: pairs[i+1]})
	}
	return out
}

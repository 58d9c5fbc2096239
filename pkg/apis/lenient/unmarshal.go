// Package lenient decodes stored objects of which a part may be unreadable: written under other definitions, or under one
// that accepts more than the Go type. Strict decoding would fail a whole list, and with it the cache of a component.
package lenient

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// Annotations hold, in memory only, what could not be read of an object. Components never write them, and those that are
// stored are ignored.
const (
	annotationPrefix = "bindy.firestoned.io/unreadable-"
	specAnnotation   = annotationPrefix + "spec"
	statusAnnotation = annotationPrefix + "status"
)

// SpecProblem is what could not be read of an object's spec: fields with errors, joined by "; ". It is empty if all of it was read.
func SpecProblem(o metav1.Object) string { return o.GetAnnotations()[specAnnotation] }

// StatusProblem is SpecProblem for the status. The controller writes statuses anew, so that it passes.
func StatusProblem(o metav1.Object) string { return o.GetAnnotations()[statusAnnotation] }

// Unmarshal decodes an object as Kubernetes' serializers do: case-sensitive, whole numbers as int64. Fields directly below
// spec and status that cannot be decoded are left empty; SpecProblem and StatusProblem return them. plain is a pointer to the object under
// a type without an UnmarshalJSON; meta is its metadata. An error means that the object has no readable metadata.
func Unmarshal(data []byte, plain any, meta *metav1.ObjectMeta) error {
	into := reflect.ValueOf(plain).Elem()
	err := jsonv2.Unmarshal(data, plain)
	if err != nil { // Theirs takes more, such as a field twice.
		into.SetZero()
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, plain)
	}
	delete(meta.Annotations, specAnnotation)
	delete(meta.Annotations, statusAnnotation)
	if err == nil {
		return nil
	}
	var parts map[string]json.RawMessage
	if json.Unmarshal(data, &parts) != nil {
		return err
	}
	into.SetZero()
	problems := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if name != "spec" && name != "status" {
			if err := decodeField(parts[name], into, name); err != nil {
				return err
			}
			continue
		}
		if found := decodeFields(parts[name], into, name); len(found) > 0 {
			problems[annotationPrefix+name] = strings.Join(found, "; ")
		}
	}
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	maps.Copy(meta.Annotations, problems)
	return nil
}

// decodeFields decodes the fields of a part of the object one by one, and returns those that cannot be.
func decodeFields(data []byte, into reflect.Value, part string) (problems []string) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return []string{describe(part, err)}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if err := decodeField(fields[name], into, part, name); err != nil {
			problems = append(problems, describe(part+"."+name, err))
		}
	}
	return problems
}

// decodeField decodes the field at a path, if all of it can be.
func decodeField(data json.RawMessage, into reflect.Value, path ...string) error {
	for _, name := range slices.Backward(path) {
		data, _ = json.Marshal(map[string]json.RawMessage{name: data}) // fails for no valid JSON
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, reflect.New(into.Type()).Interface()); err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into.Addr().Interface())
}

// maxProblem caps an error in a message: some repeat the value, which may be long.
const maxProblem = 256

func describe(field string, err error) string {
	text := err.Error()
	if len(text) > maxProblem {
		text = strings.ToValidUTF8(text[:maxProblem], "") + "…"
	}
	return fmt.Sprintf("%s cannot be read: %s", field, text)
}

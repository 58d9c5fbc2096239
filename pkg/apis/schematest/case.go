// Package schematest reads the cases that the schemas of the stored API are tested with, offline and on a real
// kube-apiserver. Only tests use it.
package schematest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Case is an object that is created, or updated when OldSpec is set, and what should become of it.
type Case struct {
	// Name tells the case apart from all others.
	Name string `json:"case"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Spec of the object, and OldSpec before an update.
	Spec    map[string]any `json:"spec"`
	OldSpec map[string]any `json:"oldSpec,omitempty"`
	// Refused holds what the refusal has to say; empty when the object is accepted.
	Refused []string `json:"refused,omitempty"`
	// Stored is a part of the spec that is stored, defaults included.
	Stored map[string]any `json:"stored,omitempty"`
}

// Load reads the cases of all files in a folder. It fails when two have one name or a file has none.
func Load(dir string) ([]Case, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no cases in %s: %w", dir, errors.Join(err, os.ErrNotExist))
	}
	var all []Case
	names := map[string]bool{}
	for _, file := range files {
		cases, err := read(file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		for _, c := range cases {
			if names[c.Name] {
				return nil, fmt.Errorf("two cases are named %q", c.Name)
			}
			names[c.Name] = true
		}
		all = append(all, cases...)
	}
	return all, nil
}

func read(file string) ([]Case, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var cases []Case
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		doc, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return cases, nil
		}
		if err != nil {
			return nil, err
		}
		c, err := parse(doc)
		if err != nil {
			return nil, fmt.Errorf("%w in:\n%s", err, doc)
		}
		cases = append(cases, c)
	}
}

// parse keeps whole numbers whole, as kube-apiserver does.
func parse(doc []byte) (Case, error) {
	var c Case
	data, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return c, err
	}
	strict, err := kjson.UnmarshalStrict(data, &c)
	return c, errors.Join(append(strict, err)...)
}

// Object gives the case's object with the given spec.
func (c Case) Object(apiVersion, namespace string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(c.Kind)
	u.SetName("case")
	u.SetNamespace(namespace)
	return u
}

// Missing lists which of the given fragments a message does not hold.
func Missing(message string, fragments []string) []string {
	var missing []string
	for _, f := range fragments {
		if !strings.Contains(message, f) {
			missing = append(missing, f)
		}
	}
	return missing
}

// Differences lists, by path, where got lacks what want holds. Fields that want leaves out are not looked at.
func Differences(path string, want, got map[string]any) []string {
	var diffs []string
	for key, w := range want {
		p := path + "." + key
		g, ok := got[key]
		wm, isMap := w.(map[string]any)
		gm, gotMap := g.(map[string]any)
		switch {
		case !ok:
			diffs = append(diffs, p+" is missing")
		case isMap && gotMap:
			diffs = append(diffs, Differences(p, wm, gm)...)
		case fmt.Sprint(w) != fmt.Sprint(g):
			diffs = append(diffs, fmt.Sprintf("%s is %v, want %v", p, g, w))
		}
	}
	return diffs
}

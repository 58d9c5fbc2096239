// Package corpus reads the cases that admission is tested with: objects of every kind that are stored or refused, with what
// the user reads. The same cases are put to "lockstep validate", without a cluster, and by server-side dry run to a real
// kube-apiserver with the webhooks. Only tests use it.
package corpus

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
	// Name of the case; no other case has it.
	Name string `json:"case"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Labels of the object.
	Labels map[string]string `json:"labels,omitempty"`
	// Spec of the object, and OldSpec before an update.
	Spec    map[string]any `json:"spec"`
	OldSpec map[string]any `json:"oldSpec,omitempty"`
	// Refused holds what the refusal has to say; empty when the object is accepted.
	Refused []string `json:"refused,omitempty"`
	// Waits is true if a cluster stores the object and warns with what Refused has: older data of its name may go. Among manifests, which
	// are all that there will be, it is refused.
	Waits bool `json:"waits,omitempty"`
	// Warned holds what the warnings have to say to an object that is accepted; Quiet wants no warning at all.
	Warned []string `json:"warned,omitempty"`
	Quiet  bool     `json:"quiet,omitempty"`
	// Stored is a part of the spec that is stored, defaults included.
	Stored map[string]any `json:"stored,omitempty"`
}

// LoadCases reads the cases of all files in the folder cases of this one. It fails when two have one name or a file has none.
func LoadCases(dir string) ([]Case, error) {
	files, err := filepath.Glob(filepath.Join(dir, "cases", "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no cases in %s: %w", dir, errors.Join(err, os.ErrNotExist))
	}
	var all []Case
	names := map[string]bool{}
	for _, file := range files {
		cases, err := readCases(file)
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

func readCases(file string) ([]Case, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var cases []Case
	err = eachDocument(data, func(doc []byte) error {
		c, err := parseCase(doc)
		cases = append(cases, c)
		return err
	})
	return cases, err
}

// eachDocument calls read with each document of a YAML file.
func eachDocument(data []byte, read func(doc []byte) error) error {
	all := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		doc, err := all.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := read(doc); err != nil {
			return fmt.Errorf("%w in:\n%s", err, doc)
		}
	}
}

// parseCase keeps whole numbers whole, as kube-apiserver does.
func parseCase(doc []byte) (Case, error) {
	var c Case
	data, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return c, err
	}
	strict, err := kjson.UnmarshalStrict(data, &c)
	return c, errors.Join(append(strict, err)...)
}

// LoadWorld reads the objects that exist before every case, and puts them into a namespace.
func LoadWorld(dir, namespace string) ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(filepath.Join(dir, "world.yaml"))
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	err = eachDocument(data, func(doc []byte) error {
		o := &unstructured.Unstructured{}
		data, err := yaml.YAMLToJSONStrict(doc)
		if err != nil {
			return err
		}
		if err := o.UnmarshalJSON(data); err != nil {
			return err
		}
		o.SetNamespace(namespace)
		objects = append(objects, o)
		return nil
	})
	return objects, err
}

// NewObject returns the case's object in a namespace, with the given spec.
func (c Case) NewObject(namespace string, spec map[string]any) *unstructured.Unstructured {
	apiVersion := "bindy.firestoned.io/v1beta1"
	if c.Kind == "DNSEndpoint" {
		apiVersion = "externaldns.k8s.io/v1alpha1"
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(c.Kind)
	u.SetName("case")
	u.SetLabels(c.Labels)
	if c.Kind != "Bind9GlobalCluster" && c.Kind != "ClusterBind9Provider" {
		u.SetNamespace(namespace)
	}
	return u
}

// MissingFragments returns which of the fragments a message does not contain.
func MissingFragments(message string, fragments []string) []string {
	var missing []string
	for _, f := range fragments {
		if !strings.Contains(message, f) {
			missing = append(missing, f)
		}
	}
	return missing
}

// FieldDifferences returns, by path, where got lacks what want has. Fields that want leaves out are ignored.
func FieldDifferences(path string, want, got map[string]any) []string {
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
			diffs = append(diffs, FieldDifferences(p, wm, gm)...)
		case fmt.Sprint(w) != fmt.Sprint(g):
			diffs = append(diffs, fmt.Sprintf("%s is %v, want %v", p, g, w))
		}
	}
	return diffs
}

// OnCluster returns the case as a cluster decides it.
func (c Case) OnCluster() Case {
	if c.Waits {
		c.Refused, c.Warned = nil, append(c.Refused, c.Warned...)
	}
	return c
}

// CheckOutcome returns what differs from the case, given the text of the refusal, empty when there is none, and the warnings.
func (c Case) CheckOutcome(refusal string, warnings []string) []string {
	switch {
	case len(c.Refused) == 0 && refusal != "":
		return []string{"refused: " + refusal}
	case len(c.Refused) > 0 && refusal == "":
		return []string{fmt.Sprintf("accepted, want it refused with %q", c.Refused)}
	}
	var problems []string
	if missing := MissingFragments(refusal, c.Refused); len(missing) > 0 {
		problems = append(problems, fmt.Sprintf("the refusal does not say %q:\n%s", missing, refusal))
	}
	messages := strings.Join(warnings, "\n")
	if missing := MissingFragments(messages, c.Warned); len(missing) > 0 {
		problems = append(problems, fmt.Sprintf("no warning says %q:\n%s", missing, messages))
	}
	if c.Quiet && messages != "" {
		problems = append(problems, "warned: "+messages)
	}
	return problems
}

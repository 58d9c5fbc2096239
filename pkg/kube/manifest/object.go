package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kyaml "sigs.k8s.io/yaml"
)

// Object is a Kubernetes object as it is in a file.
type Object struct {
	unstructured.Unstructured
	// File is the file's name.
	File string
	node *yaml.Node
}

// Fault is a place where a file cannot be read as YAML.
type Fault struct {
	File    string
	Line    int
	Message string
}

// documentStart is where a YAML document begins: kubectl splits at these lines as well.
var documentStart = regexp.MustCompile(`(?m)^---(?:[ \t].*)?\r?$`)

// Parse reads the objects of one file.
func Parse(file string, text []byte) ([]Object, []Fault) {
	var objects []Object
	var faults []Fault
	line := 1 // of the document's first byte
	for _, part := range splitDocuments(text) {
		found, err := parseDocument(file, part, line)
		if err != nil {
			faults = append(faults, newFault(file, line, err))
		}
		objects = append(objects, found...)
		line += bytes.Count(part, []byte("\n"))
	}
	return objects, faults
}

// splitDocuments cuts a file before each line that begins a document, so that one that cannot be read does not hide the others.
func splitDocuments(text []byte) [][]byte {
	var parts [][]byte
	begin := 0
	for _, at := range documentStart.FindAllIndex(text, -1) {
		parts = append(parts, text[begin:at[0]])
		begin = at[0]
	}
	return append(parts, text[begin:])
}

// parseDocument reads one document, whose first line has the given number.
func parseDocument(file string, text []byte, line int) ([]Object, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); errors.Is(err, io.EOF) || (err == nil && len(root.Content) == 0) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	shiftLines(&root, line-1)
	node := root.Content[0]
	if node.Kind != yaml.MappingNode || childNode(node, "kind") == nil || childNode(node, "apiVersion") == nil {
		return nil, nil
	}
	// Values are read as kubectl reads them, which knows other spellings of true and false than YAML 1.2.
	data, err := kyaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	value := map[string]any{}
	if err := utiljson.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	return flattenList(Object{unstructured.Unstructured{Object: value}, file, node}), nil
}

// flattenList yields the items of a list, or the object itself.
func flattenList(o Object) []Object {
	items, ok := o.Object["items"].([]any)
	list := childNode(o.node, "items")
	if !strings.HasSuffix(o.GetKind(), "List") || !ok || list == nil {
		return []Object{o}
	}
	var objects []Object
	for i, item := range items {
		if value, ok := item.(map[string]any); ok && i < len(list.Content) {
			objects = append(objects, flattenList(Object{unstructured.Unstructured{Object: value}, o.File, resolveAlias(list.Content[i])})...)
		}
	}
	return objects
}

// shiftLines adds to the line numbers of a node and of all in it.
func shiftLines(n *yaml.Node, lines int) {
	n.Line += lines
	for _, c := range n.Content {
		shiftLines(c, lines)
	}
}

var lineIn = regexp.MustCompile(`line (\d+)`)

// newFault gives an error of the YAML library its place; the line is the document's where the error has none.
func newFault(file string, line int, err error) Fault {
	message := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: ")
	if m := lineIn.FindStringSubmatch(message); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			line += n - 1
			message = strings.TrimPrefix(strings.Replace(message, m[0]+": ", "", 1), "unmarshal errors:\n  ")
		}
	}
	return Fault{file, line, fmt.Sprintf("not YAML: %s", message)}
}

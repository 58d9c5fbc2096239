package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
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

// Parse reads the objects of one file, and passes over what is none.
func Parse(file string, text []byte) ([]Object, []Fault) { return parse(file, text, false) }

// parse is Parse; what is no object is a Fault if somebody has named the file.
func parse(file string, text []byte, named bool) ([]Object, []Fault) {
	var objects []Object
	var faults []Fault
	line := 1 // of the document's first byte
	for _, part := range splitDocuments(toUTF8(text)) {
		found, err := parseDocument(file, part, line, named)
		if err != nil {
			faults = append(faults, newFault(file, part, line, err))
		}
		objects = append(objects, found...)
		line += bytes.Count(part, []byte("\n"))
	}
	return objects, faults
}

// parseDocument reads one document, whose first line has the given number. There may be objects although one is wrong.
func parseDocument(file string, text []byte, line int, named bool) ([]Object, error) {
	if behindStart.Match(text) {
		return nil, &problem{1, "kubectl reads nothing but a comment behind ---: begin the document in the next line"}
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); errors.Is(err, io.EOF) || (err == nil && len(root.Content) == 0) {
		return nil, nil
	} else if err != nil {
		return nil, locateProblem(text, err)
	}
	node := root.Content[0]
	if whole, err := isObject(node, named); !whole || err != nil {
		return nil, err
	}
	merges, err := checkKeys(node)
	if err != nil {
		return nil, err
	}
	// Values are read as kubectl reads them, which knows other spellings of true and false than YAML 1.2.
	convert := kyaml.YAMLToJSONStrict
	if merges {
		convert = kyaml.YAMLToJSON // What is merged may be overridden; checkKeys has found other duplicates.
	}
	data, err := convert(text)
	if err != nil {
		return nil, err
	}
	value := map[string]any{}
	if err := utiljson.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	objects, err := flattenList(Object{unstructured.Unstructured{Object: value}, file, node})
	shiftLines(&root, line-1)
	return objects, err
}

// locateProblem returns the error of the parser that kubectl has, which says where text is that belongs nowhere. The other one says where the map or
// list around it begins.
func locateProblem(text []byte, err error) error {
	if _, kubectls := kyaml.YAMLToJSON(text); kubectls != nil && strings.Contains(err.Error(), "did not find expected") {
		return kubectls
	}
	return err
}

// isObject reports whether a document is an object of Kubernetes. Folders hold other files, too, such as values of charts; what else kubectl
// would refuse is an error.
func isObject(n *yaml.Node, named bool) (bool, error) {
	if n.Kind != yaml.MappingNode {
		if named && n.Tag != "!!null" {
			return false, &problem{n.Line, "no object: an object is a map with apiVersion and kind"}
		}
		return false, nil
	}
	version, kind := childNode(n, "apiVersion"), childNode(n, "kind")
	isPart := (version != nil || kind != nil) && (childNode(n, "metadata") != nil || childNode(n, "spec") != nil)
	switch {
	case version != nil && kind != nil:
		return true, nil
	case kind == nil && (named || isPart):
		return false, &problem{n.Line, "kind is missing"}
	case named || isPart:
		return false, &problem{n.Line, "apiVersion is missing"}
	}
	return false, nil
}

// checkKeys demands that keys are names, each once in its map, and reports whether a map is merged into another.
func checkKeys(n *yaml.Node) (merges bool, err error) {
	if n.Kind == yaml.MappingNode {
		seen := map[string]bool{}
		for i := 0; i < len(n.Content); i += 2 {
			switch key := resolveAlias(n.Content[i]); {
			case key.Kind != yaml.ScalarNode:
				return false, &problem{n.Content[i].Line, "not YAML of an object: a map or a list stands where a key should be"}
			case key.Tag == "!!merge":
				merges = true
			case seen[key.Value]:
				return false, &problem{key.Line, fmt.Sprintf("not YAML: key %q already set in map", key.Value)}
			default:
				seen[key.Value] = true
			}
		}
	}
	for _, child := range n.Content {
		below, err := checkKeys(child)
		if err != nil {
			return false, err
		}
		merges = merges || below
	}
	return merges, nil
}

// flattenList gives the objects of a list, or the object. The error is for what is no object.
func flattenList(o Object) (objects []Object, err error) {
	switch {
	case o.GetKind() == "":
		return nil, &problem{o.node.Line, "kind is missing"}
	case o.GetAPIVersion() == "":
		return nil, &problem{o.node.Line, "apiVersion is missing"}
	}
	items, ok := o.Object["items"].([]any)
	list := childNode(o.node, "items")
	if !strings.HasSuffix(o.GetKind(), "List") || !ok || list == nil {
		if o.GetKind() == "List" && list != nil && o.Object["items"] != nil {
			return nil, &problem{list.Line, "items is no list"}
		}
		return []Object{o}, nil
	}
	for i, item := range items {
		if i >= len(list.Content) {
			break
		}
		value, ok := item.(map[string]any)
		if !ok {
			err = cmp.Or[error](err, &problem{list.Content[i].Line, fmt.Sprintf("items[%d] is no object", i)})
			continue
		}
		found, wrong := flattenList(o.newItem(value, resolveAlias(list.Content[i])))
		if objects = append(objects, found...); err == nil {
			err = wrong
		}
	}
	return objects, err
}

// newItem makes the object of an item, which has the list's kind if it says nothing else, as in a list of kube-apiserver.
func (o Object) newItem(value map[string]any, node *yaml.Node) Object {
	item := Object{unstructured.Unstructured{Object: value}, o.File, node}
	if item.GetKind() == "" && item.GetAPIVersion() == "" {
		item.SetKind(strings.TrimSuffix(o.GetKind(), "List"))
		item.SetAPIVersion(o.GetAPIVersion())
	}
	return item
}

func shiftLines(n *yaml.Node, lines int) {
	n.Line += lines
	for _, c := range n.Content {
		shiftLines(c, lines)
	}
}

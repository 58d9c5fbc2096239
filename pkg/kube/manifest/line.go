package manifest

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Line is the line of a field, or of the nearest thing around it that is there: a missing required field has the line of what it is
// missing in. Fields are written as Kubernetes writes them: spec.endpoints[0].targets[1], spec.selector.matchLabels[app].
func (o Object) Line(field string) int {
	_, line := o.find(field)
	return line
}

// IsEmpty reports whether a field is there and has nothing behind its colon, not even null.
func (o Object) IsEmpty(field string) bool {
	node, _ := o.find(field)
	return node != nil && node.Kind == yaml.ScalarNode && node.Tag == "!!null" && node.Value == ""
}

// find returns a field's value and line; no value, and the line of the nearest thing around it, if it is not there.
func (o Object) find(field string) (*yaml.Node, int) {
	node, line := o.node, o.node.Line
	for _, step := range splitPath(field) {
		next, at := stepInto(resolveAlias(node), step)
		if next == nil {
			return nil, line
		}
		node, line = next, at
	}
	return node, line
}

// stepInto finds what a mapping or sequence has under a step, and its line: the key's, if it has one.
func stepInto(n *yaml.Node, step string) (*yaml.Node, int) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i+1], n.Content[i].Line
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i].Line
		}
	default:
	}
	return nil, 0
}

// splitPath takes a path apart. A key in brackets may hold dots.
func splitPath(field string) []string {
	var all []string
	for field != "" {
		if rest, ok := strings.CutPrefix(field, "["); ok {
			key, after, _ := strings.Cut(rest, "]")
			all, field = append(all, key), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(field, ".[")
		if end < 0 {
			return append(all, field)
		}
		all, field = append(all, field[:end]), strings.TrimPrefix(field[end:], ".")
	}
	return all
}

func childNode(n *yaml.Node, key string) *yaml.Node {
	value, _ := stepInto(n, key)
	if value == nil {
		return nil
	}
	return resolveAlias(value)
}

// resolveAlias follows an alias to what it stands for.
func resolveAlias(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

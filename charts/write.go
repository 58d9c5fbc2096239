package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// actions are the placeholders of a rendering and what the template has instead.
var actions = map[string]string{
	namespacePlaceholder: `{{ .Release.Namespace }}`,
	imagePlaceholder:     `{{ include "lockstep.image" . }}`,
	cidrPlaceholder:      `{{ .Values.networkPolicy.controlPlane }}`,
}

// writeDocument returns the template of an object, with the line that separates it from the one before.
func writeDocument(n node, when condition) string {
	w := &writer{}
	w.conditional(when, func() {
		w.line(0, "---")
		w.node(n, 0)
	})
	return w.String()
}

// writer writes nodes as YAML with template actions.
type writer struct{ strings.Builder }

func (w *writer) line(indent int, text string) {
	if text == "" {
		w.WriteString("\n")
		return
	}
	w.WriteString(strings.Repeat(" ", indent) + text + "\n")
}

func (w *writer) conditional(when condition, write func()) {
	if len(when) > 0 {
		w.line(0, "{{- if "+when.expression()+" }}")
		defer w.line(0, "{{- end }}")
	}
	write()
}

// node writes the lines of a mapping or a sequence.
func (w *writer) node(n node, indent int) {
	switch n := n.(type) {
	case *mapping:
		for _, group := range groupBy(n.entries, func(e *entry) condition { return e.when }) {
			w.conditional(group[0].when, func() {
				for _, e := range group {
					w.entry(e, indent)
				}
			})
		}
	case *sequence:
		for _, group := range groupBy(n.items, func(i *item) condition { return i.when }) {
			w.conditional(group[0].when, func() {
				for _, i := range group {
					w.item(i.value, indent)
				}
			})
		}
	case *text:
		w.block(n.value, indent)
	case *scalar:
		panic("a scalar has no line of its own")
	}
}

// block writes lines of a template. Actions are not indented.
func (w *writer) block(lines string, indent int) {
	for l := range strings.Lines(indented(lines, indent)) {
		l = strings.TrimSuffix(l, "\n")
		if strings.HasPrefix(l, "{{-") {
			w.line(0, l)
		} else {
			w.line(indent, l)
		}
	}
}

func (w *writer) entry(e *entry, indent int) {
	switch v := e.value.(type) {
	case *mapping:
		w.line(indent, quoteKey(e.key)+":")
		w.node(v, indent+2)
	case *sequence:
		w.line(indent, quoteKey(e.key)+":")
		w.node(v, indent)
	case *scalar:
		w.lines(quoteKey(e.key)+": ", v, indent)
	case *text:
		if v.block {
			w.block(v.value, indent)
		} else {
			w.line(indent, quoteKey(e.key)+": "+v.value)
		}
	}
}

func (w *writer) item(n node, indent int) {
	switch v := n.(type) {
	case *scalar:
		w.lines("- ", v, indent)
	case *text:
		if v.block {
			w.block(v.value, indent)
		} else {
			w.line(indent, "- "+v.value)
		}
	default:
		inner := &writer{}
		inner.node(n, indent+2)
		lines := inner.String()
		if strings.HasPrefix(lines, "{{") {
			w.line(indent, "-")
			w.WriteString(lines)
		} else {
			w.WriteString(strings.Repeat(" ", indent) + "- " + lines[indent+2:])
		}
	}
}

// lines writes a scalar behind a prefix: text of several lines as a block.
func (w *writer) lines(prefix string, s *scalar, indent int) {
	value, ok := s.value.(string)
	if !ok || !strings.Contains(value, "\n") || strings.ContainsAny(value, "\t\r") || strings.HasPrefix(value, " ") || strings.HasPrefix(value, "\n") || strings.HasSuffix(value, "\n\n") {
		w.line(indent, prefix+writeScalar(s.value))
		return
	}
	body, ended := strings.CutSuffix(value, "\n")
	w.line(indent, prefix+map[bool]string{true: "|", false: "|-"}[ended])
	for _, l := range strings.Split(body, "\n") {
		if l == "" {
			w.line(0, "")
		} else {
			w.line(indent+2, withActions(l))
		}
	}
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_/.*$][A-Za-z0-9_/.$()=*@ -]*$`)

// writeScalar returns a value on one line: plain if it is read back as the same, else in quotes.
func writeScalar(value any) string {
	s, ok := value.(string)
	if !ok {
		return marshalJSON(value)
	}
	var back any
	if plain.MatchString(s) && withActions(s) == s && yaml.Unmarshal([]byte(s), &back) == nil && back == any(s) {
		return s
	}
	return withActions(marshalJSON(s))
}

// withActions puts actions in the place of placeholders, and has the template leave everything else as it is.
func withActions(s string) string {
	s = strings.ReplaceAll(s, "{{", `{{ "{{" }}`)
	for _, placeholder := range sortedKeys(actions) {
		s = strings.ReplaceAll(s, placeholder, actions[placeholder])
	}
	return s
}

func quoteKey(key string) string {
	if plain.MatchString(key) {
		return key
	}
	return marshalJSON(key)
}

func marshalJSON(value any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(err) // It came from YAML.
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// groupBy returns the neighbors that have the same condition, together.
func groupBy[T any](all []T, when func(T) condition) (groups [][]T) {
	for i, each := range all {
		if i > 0 && slices.Equal(when(all[i-1]), when(each)) {
			groups[len(groups)-1] = append(groups[len(groups)-1], each)
		} else {
			groups = append(groups, []T{each})
		}
	}
	return groups
}

// sortedKeys returns the keys of a map: first those that say what an object is, then the others by name.
func sortedKeys[V any](m map[string]V) []string {
	first := []string{"apiVersion", "kind", "metadata", "name", "namespace"}
	rank := func(key string) int {
		if i := slices.Index(first, key); i >= 0 {
			return i
		}
		return len(first)
	}
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		if rank(a) != rank(b) {
			return rank(a) - rank(b)
		}
		return strings.Compare(a, b)
	})
}

// indented has the function nindent of a template indent by as much as a place is, and two more.
func indented(lines string, indent int) string {
	return strings.ReplaceAll(lines, "INDENT_2", fmt.Sprint(indent+2))
}

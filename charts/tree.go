package main

import (
	"reflect"
)

// A node is a part of an object, of which parts may be there under a condition only: a mapping, a sequence, a scalar or text.
type node interface{ isNode() }

// mapping has the entries of a map in the order in which they came. A key may be there several times, with conditions of which at most
// one is true.
type mapping struct{ entries []*entry }

type entry struct {
	key   string
	when  condition
	value node
}

// sequence has the items of a list.
type sequence struct{ items []*item }

type item struct {
	when  condition
	value node
}

// scalar is a string, a number, a boolean or nil, or an empty map or list.
type scalar struct{ value any }

// text is what the template has in place of a value, or, in a mapping without a key and in a sequence, of entries: whole lines, which
// are indented as needed.
type text struct {
	value string
	// block is true if the text is whole lines.
	block bool
}

func (*mapping) isNode()  {}
func (*sequence) isNode() {}
func (*scalar) isNode()   {}
func (*text) isNode()     {}

// newNode returns a node without conditions.
func newNode(value any) node {
	switch v := value.(type) {
	case map[string]any:
		if len(v) > 0 {
			m := &mapping{}
			for _, key := range sortedKeys(v) {
				m.entries = append(m.entries, &entry{key: key, value: newNode(v[key])})
			}
			return m
		}
	case []any:
		if len(v) > 0 {
			s := &sequence{}
			for _, element := range v {
				s.items = append(s.items, &item{value: newNode(element)})
			}
			return s
		}
	}
	return &scalar{value}
}

// evaluate returns the value of a node while some options are on. There is no text in it yet.
func evaluate(n node, on set) any {
	switch n := n.(type) {
	case *mapping:
		m := map[string]any{}
		for _, e := range n.entries {
			if e.when.holds(on) {
				m[e.key] = evaluate(e.value, on)
			}
		}
		return m
	case *sequence:
		s := []any{}
		for _, i := range n.items {
			if i.when.holds(on) {
				s = append(s, evaluate(i.value, on))
			}
		}
		return s
	case *scalar:
		return n.value
	}
	panic("text cannot be evaluated")
}

// change is a rendering in which one more option is on than in another one.
type change struct {
	before, after set
	// option is the one that is on in addition.
	option string
}

// apply changes a node so that its value is the given one when the options after the change are on, and what it was without the option.
// Known are the conditions of the nodes above. It reports whether it could; a caller replaces the whole node if not.
func (c change) apply(n node, value any, known condition) bool {
	if reflect.DeepEqual(evaluate(n, c.after), value) {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		if m, ok := n.(*mapping); ok && len(v) > 0 {
			c.applyMapping(m, v, known)
			return true
		}
	case []any:
		if s, ok := n.(*sequence); ok && len(v) > 0 {
			return c.applySequence(s, v, known)
		}
	}
	return false
}

func (c change) applyMapping(m *mapping, value map[string]any, known condition) {
	for _, e := range m.entries {
		if !e.when.holds(c.after) {
			continue
		}
		wanted, ok := value[e.key]
		if !ok || !c.apply(e.value, wanted, append(known[:len(known):len(known)], e.when...)) {
			e.when = e.when.and(literal{c.option, true})
		}
	}
	for _, key := range sortedKeys(value) {
		if !m.has(key, c.after) {
			m.insert(&entry{key, c.after.allOn().without(known), newNode(value[key])})
		}
	}
}

// has reports whether a mapping has a key while some options are on.
func (m *mapping) has(key string, on set) bool {
	for _, e := range m.entries {
		if e.key == key && e.when.holds(on) {
			return true
		}
	}
	return false
}

// insert adds an entry, after another one with the same key if there is one.
func (m *mapping) insert(added *entry) {
	at := len(m.entries)
	for i, e := range m.entries {
		if e.key == added.key {
			at = i + 1
		}
	}
	m.entries = append(m.entries[:at:at], append([]*entry{added}, m.entries[at:]...)...)
}

// applySequence changes the items one by one, and adds or removes at the end.
func (c change) applySequence(s *sequence, value []any, known condition) bool {
	next := 0
	for _, i := range s.items {
		if !i.when.holds(c.after) {
			continue
		}
		if next >= len(value) || !c.apply(i.value, value[next], append(known[:len(known):len(known)], i.when...)) {
			return false
		}
		next++
	}
	for _, element := range value[next:] {
		s.items = append(s.items, &item{c.after.allOn().without(known), newNode(element)})
	}
	return true
}

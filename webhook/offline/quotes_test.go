package offline

import (
	"errors"
	"strings"
	"testing"
)

// What YAML does not take for text is named with what to write.
func TestQuotesAreMissing(t *testing.T) {
	for spec, want := range map[string]string{
		`{name: a, type: NULL, data: ['\# 0']}`:     `spec.type: Required value: YAML takes an unquoted NULL, null or ~ for no value: put it in quotes`,
		`{name: ~, type: HTTPS, data: ['0 .']}`:     `spec.name: Required value: YAML takes an unquoted NULL, null or ~ for no value: put it in quotes`,
		`{name: 10, type: PTR, data: ['a.test.']}`:  `YAML takes it for integer: put it in quotes`,
		`{name: y, type: PTR, data: ['a.test.']}`:   `YAML takes it for boolean: put it in quotes`,
		`{name: "10", type: TYPE65280, data: [10]}`: `spec.data[0] in body must be of type string: "integer"; YAML takes it for integer: put it in quotes`,
		`{name: "y", type: "NULL", data: ['\# 0']}`: "",
		`{name: "bücher.a", type: A, data: [a]}`:    `such as "\032" for a blank; "bücher.a" is "xn--bcher-kva.a" in DNS (RFC 5891)`,
		`{name: "y", data: ['\# 0']}`:               `spec.type: Required value`,
		`{name: {a: b}, type: A, data: [a]}`:        `must be of type string: "object"; write a text`,
		`{name: a, type: A, data: 192.0.2.1}`:       `must be of type array: "string"; write a list, such as ["a", "b"]`,
		`{name: a, ttl: 5m, type: A, data: [a]}`:    `must be of type integer: "string"; write a whole number without quotes and units`,
		`{name: a, TTL: 5, type: A, data: [a]}`:     `spec.TTL: Invalid value: unknown field; write ttl`,
		`{name: a, type: A, data: {a: b}}`:          `must be of type array: "object"; write a list: begin each entry with "- "`,
		"\n  name: a\n  type:\n  data: [a]":         `spec.type: Required value: nothing is written here: indent what belongs to it`,
		"":                                          `spec: Required value: nothing is written here`,
		`{name: a, typ: A, data: [a]}`:              `spec.typ: Invalid value: unknown field; write type`,
		`{name: a, zoneRef: x, type: A, data: [a]}`: `spec.zoneRef: Invalid value: unknown field; a record names no zone: the zone selects it by its labels (recordsFrom)`,
	} {
		text := "apiVersion: bindy.firestoned.io/v1beta1\nkind: DNSRecord\nmetadata: {name: a}\nspec: " + spec + "\n"
		o := NewOptions()
		o.Files = []string{"-"}
		var out, log strings.Builder
		if err := o.Run(t.Context(), strings.NewReader(text), &out, &log); err != nil && !errors.Is(err, ErrFindings) {
			t.Fatal(err)
		}
		if got := out.String(); (want == "") != (got == "") || !strings.Contains(got, want) || strings.HasSuffix(want, "Required value") && strings.Contains(got, "quotes") {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}

// What is not there is no null that needs quotes.
func TestMissingSpecification(t *testing.T) {
	o := NewOptions()
	o.Files = []string{"-"}
	var out, log strings.Builder
	err := o.Run(t.Context(), strings.NewReader("apiVersion: bindy.firestoned.io/v1beta1\nkind: DNSRecord\nmetadata: {name: a}\n"), &out, &log)
	if !errors.Is(err, ErrFindings) || !strings.HasSuffix(out.String(), ": spec: Required value\n") {
		t.Errorf("%v: %s", err, out.String())
	}
}

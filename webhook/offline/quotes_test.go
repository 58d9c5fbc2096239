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
		`{name: "y", data: ['\# 0']}`:               `spec.type: Required value`,
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

package listing

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// text is JSON under construction, as encoding/json writes it.
type text struct{ raw []byte }

// key begins a field of the object that was begun last.
func (t *text) key(name string) {
	if t.raw[len(t.raw)-1] != '{' {
		t.raw = append(t.raw, ',')
	}
	t.raw = append(append(append(t.raw, '"'), name...), '"', ':')
}

func (t *text) begin() { t.raw = append(t.raw, '{') }

func (t *text) end() { t.raw = append(t.raw, '}') }

// addMarshaled adds a value for which encoding/json is fast enough.
func (t *text) addMarshaled(value any) {
	raw, _ := json.Marshal(value) // It has nothing that cannot be encoded.
	t.raw = append(t.raw, raw...)
}

func (t *text) addString(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			t.addMarshaled(s)
			return
		}
	}
	t.raw = append(append(append(t.raw, '"'), s...), '"')
}

func stringField[S ~string](t *text, name string, value S) {
	t.key(name)
	t.addString(string(value))
}

// optionalString, like the other optional fields, leaves out what is empty.
func optionalString[S ~string](t *text, name string, value S) {
	if value != "" {
		stringField(t, name, value)
	}
}

func intField[I int32 | int64](t *text, name string, value I) {
	t.key(name)
	t.raw = strconv.AppendInt(t.raw, int64(value), 10)
}

func optionalInt[I int32 | int64](t *text, name string, value I) {
	if value != 0 {
		intField(t, name, value)
	}
}

func optionalIntAt(t *text, name string, value *int64) {
	if value != nil {
		intField(t, name, *value)
	}
}

func boolField(t *text, name string, value bool) {
	t.key(name)
	t.raw = strconv.AppendBool(t.raw, value)
}

// addTime adds a time, null if it is none.
func (t *text) addTime(at time.Time, layout string) {
	if at.IsZero() {
		t.raw = append(t.raw, "null"...)
		return
	}
	t.raw = append(at.UTC().AppendFormat(append(t.raw, '"'), layout), '"')
}

func optionalTime(t *text, name string, at *metav1.Time) {
	if at != nil {
		t.key(name)
		t.addTime(at.Time, time.RFC3339)
	}
}

func optionalMicroTime(t *text, name string, at *metav1.MicroTime) {
	if at != nil {
		t.key(name)
		t.addTime(at.Time, metav1.RFC3339Micro)
	}
}

// optionalList adds a list of objects.
func optionalList[T any](t *text, name string, items []T, add func(*text, *T)) {
	if len(items) == 0 {
		return
	}
	t.key(name)
	t.raw = append(t.raw, '[')
	for i := range items {
		if i > 0 {
			t.raw = append(t.raw, ',')
		}
		add(t, &items[i])
	}
	t.raw = append(t.raw, ']')
}

func optionalStrings(t *text, name string, items []string) {
	optionalList(t, name, items, func(t *text, s *string) { t.addString(*s) })
}

func optionalInts(t *text, name string, items []int32) {
	optionalList(t, name, items, func(t *text, n *int32) { t.raw = strconv.AppendInt(t.raw, int64(*n), 10) })
}

func optionalMap(t *text, name string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	t.key(name)
	t.begin()
	for i, key := range slices.Sorted(maps.Keys(values)) {
		if i > 0 {
			t.raw = append(t.raw, ',')
		}
		t.addString(key)
		t.raw = append(t.raw, ':')
		t.addString(values[key])
	}
	t.end()
}

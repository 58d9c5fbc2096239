package named

import (
	"encoding/json"
	"fmt"
	"maps"
)

// overlay returns base with every field that over sets in place of its own. Either may be nil, and so is the result when both
// are.
func overlay[T any](base, over *T) *T {
	if base == nil || over == nil {
		return firstNonNil(over, base)
	}
	fields := fieldsOf(base)
	maps.Copy(fields, fieldsOf(over))
	text, err := json.Marshal(fields)
	merged := new(T)
	if err == nil {
		err = json.Unmarshal(text, merged)
	}
	if err != nil {
		panic(fmt.Sprintf("overlaying %T: %v", base, err)) // Both are values of the API, which has them in this form.
	}
	return merged
}

// fieldsOf returns the JSON form of an API value, by field; fields that are not set are left out.
func fieldsOf(value any) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		panic(fmt.Sprintf("fields of %T: %v", value, err))
	}
	return fields
}

// firstSlice returns the first list that has anything in it.
func firstSlice[T any](lists ...[]T) []T {
	for _, list := range lists {
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

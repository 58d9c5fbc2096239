package certs

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestInjection(t *testing.T) {
	bundle := []byte("BUNDLE")
	encoded := base64.StdEncoding.EncodeToString(bundle)
	tests := map[string]struct {
		object      string
		wantCurrent bool
		wantPatch   string
	}{
		"APIService without a bundle": {
			object:    `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"x","uid":"u"},"spec":{"versionPriority":1}}`,
			wantPatch: `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"x","uid":"u"},"spec":{"caBundle":"` + encoded + `"}}`,
		},
		"APIService with it": {
			object:      `{"kind":"APIService","metadata":{"name":"x","uid":"u"},"spec":{"caBundle":"` + encoded + `"}}`,
			wantCurrent: true,
		},
		"one webhook of two has it": {
			object: `{"apiVersion":"v1","kind":"K","metadata":{"name":"x","uid":"u"},"webhooks":[
				{"name":"a","clientConfig":{"caBundle":"` + encoded + `"},"sideEffects":"None"},
				{"name":"b","clientConfig":{"service":{"name":"s"}}}]}`,
			wantPatch: `{"apiVersion":"v1","kind":"K","metadata":{"name":"x","uid":"u"},"webhooks":[
				{"name":"a","clientConfig":{"caBundle":"` + encoded + `"}},{"name":"b","clientConfig":{"caBundle":"` + encoded + `"}}]}`,
		},
		"both have it": {
			object: `{"kind":"K","metadata":{"name":"x","uid":"u"},"webhooks":[
				{"name":"a","clientConfig":{"caBundle":"` + encoded + `"}},{"name":"b","clientConfig":{"caBundle":"` + encoded + `"}}]}`,
			wantCurrent: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(tc.object), &obj.Object); err != nil {
				t.Fatal(err)
			}
			if got := isCurrent(obj, bundle); got != tc.wantCurrent {
				t.Errorf("current = %v", got)
			}
			if tc.wantCurrent {
				return
			}
			if got := asJSON(t, applyConfiguration(obj, bundle)); got != normal(t, tc.wantPatch) {
				t.Errorf("patch\n got %s\nwant %s", got, normal(t, tc.wantPatch))
			}
		})
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func normal(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return asJSON(t, v)
}

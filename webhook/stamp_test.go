package webhook

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const zoneAnnotation = "bindy.firestoned.io/zone"

func TestStamp(t *testing.T) {
	tests := map[string]struct {
		object string
		want   map[string]string // the annotations afterwards
	}{
		"selected, no annotations": {
			`{kind: ARecord, metadata: {name: a, namespace: dns, labels: {zone: example}}, spec: {name: a}}`,
			map[string]string{zoneAnnotation: "example.com"},
		},
		"selected, other annotations stay": {
			`{kind: TXTRecord, metadata: {name: a, namespace: dns, labels: {zone: example}, annotations: {x: "1"}}}`,
			map[string]string{"x": "1", zoneAnnotation: "example.com"},
		},
		"stamped already": {
			`{kind: ARecord, metadata: {name: a, namespace: dns, labels: {zone: example}, annotations: {bindy.firestoned.io/zone: example.com}}}`,
			map[string]string{zoneAnnotation: "example.com"},
		},
		"edited by hand": {
			`{kind: CAARecord, metadata: {name: a, namespace: dns, labels: {zone: example}, annotations: {bindy.firestoned.io/zone: evil.test}}}`,
			map[string]string{zoneAnnotation: "example.com"},
		},
		"emptied by hand": {
			`{kind: CAARecord, metadata: {name: a, namespace: dns, labels: {zone: example}, annotations: {bindy.firestoned.io/zone: ""}}}`,
			map[string]string{zoneAnnotation: "example.com"},
		},
		"not selected": {
			`{kind: ARecord, metadata: {name: a, namespace: dns, labels: {zone: other}}}`, nil,
		},
		"not selected any more": {
			`{kind: ARecord, metadata: {name: a, namespace: dns, annotations: {bindy.firestoned.io/zone: example.com, x: "1"}}}`,
			map[string]string{"x": "1"},
		},
		"another namespace": {
			`{kind: ARecord, metadata: {name: a, namespace: elsewhere, labels: {zone: example}}}`, nil,
		},
		"a specification that cannot be read": {
			`{kind: MXRecord, metadata: {name: a, namespace: dns, labels: {zone: example}}, spec: {priority: high}}`,
			map[string]string{zoneAnnotation: "example.com"},
		},
		"no record": {
			`{kind: DNSZone, metadata: {name: a, namespace: dns, labels: {zone: example}}}`, nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &stamper{example(t)}
			req := request(t, tc.object, "")
			after := patched(t, req, s.Handle(quick(t), req))
			if diff := cmp.Diff(tc.want, annotations(t, after)); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			req.Object.Raw = after
			if again := s.Handle(quick(t), req); !again.Allowed || len(again.Patches) > 0 {
				t.Errorf("a second time: %+v", again)
			}
		})
	}
}

// patched applies the answer's patch, as kube-apiserver does.
func patched(t *testing.T, req admission.Request, answer admission.Response) []byte {
	t.Helper()
	if !answer.Allowed {
		t.Fatalf("refused: %v", answer.Result)
	}
	if len(answer.Patches) == 0 {
		return req.Object.Raw
	}
	if err := answer.Complete(req); err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(answer.Patch)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply(req.Object.Raw)
	if err != nil {
		t.Fatal(err)
	}
	return after
}

func annotations(t *testing.T, object []byte) map[string]string {
	t.Helper()
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(object, &head); err != nil {
		t.Fatal(err)
	}
	return head.Annotations
}

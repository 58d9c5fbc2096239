package lenient_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

// What cannot be decoded is left out and named; the rest is there, and nobody can make an object unreadable by an annotation.
func TestUnmarshal(t *testing.T) {
	for name, c := range map[string]struct {
		text, spec, status, role string
	}{
		"readable":           {`{"metadata": {"name": "a"}, "spec": {"role": "primary"}}`, "", "", "primary"},
		"a quantity":         {`{"metadata": {"name": "a"}, "spec": {"role": "primary", "storage": {"emptyDir": {"sizeLimit": "1e1.5"}}}}`, "spec.storage cannot be read", "", "primary"},
		"a time":             {`{"metadata": {"name": "a"}, "spec": {"role": "primary"}, "status": {"phaseSince": "noon"}}`, "", "status.phaseSince cannot be read", "primary"},
		"all of the spec":    {`{"metadata": {"name": "a"}, "spec": 1}`, "spec cannot be read", "", ""},
		"a forged complaint": {`{"metadata": {"name": "a", "annotations": {"bindy.firestoned.io/unreadable-spec": "x"}}, "spec": {"role": "primary"}}`, "", "", "primary"},
	} {
		t.Run(name, func(t *testing.T) {
			var o v1beta1.Bind9Instance
			if err := json.Unmarshal([]byte(c.text), &o); err != nil {
				t.Fatal(err)
			}
			check := func(what, got, want string) {
				if (got == "") != (want == "") || !strings.HasPrefix(got, want) {
					t.Errorf("%s: %q, want %q", what, got, want)
				}
			}
			check("spec", lenient.SpecProblem(&o), c.spec)
			check("status", lenient.StatusProblem(&o), c.status)
			if string(o.Spec.Role) != c.role || o.Name != "a" {
				t.Errorf("role %q, name %q", o.Spec.Role, o.Name)
			}
		})
	}
	for _, text := range []string{`{"metadata": {"name": 1}}`, `[]`, `{"metadata"`} {
		if err := json.Unmarshal([]byte(text), &v1beta1.Bind9Instance{}); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

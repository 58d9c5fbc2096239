package schema

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-dns/lockstep/manifests"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

// leaf is one field, element or value of a map in the schema of a kind.
type leaf struct {
	kind   *Kind
	path   []string // "[]" is the first element of a list, "{}" a value of a map
	schema *apiextensionsv1.JSONSchemaProps
}

func (l leaf) String() string {
	return l.kind.Definition.Spec.Names.Kind + "." + strings.Join(l.path, ".")
}

// leaves are those of all kinds.
var leaves = sync.OnceValue(func() []leaf {
	kinds, err := Load(manifests.Definitions())
	if err != nil {
		panic(err)
	}
	var all []leaf
	for _, kind := range kinds {
		root := kind.Definition.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, part := range []string{"spec", "status"} {
			if s, ok := root.Properties[part]; ok {
				all = appendLeaves(all, leaf{kind, []string{part}, &s})
			}
		}
	}
	slices.SortFunc(all, func(a, b leaf) int { return strings.Compare(a.String(), b.String()) })
	return all
})

func appendLeaves(all []leaf, l leaf) []leaf {
	all = append(all, l)
	below := func(name string, s *apiextensionsv1.JSONSchemaProps) {
		all = appendLeaves(all, leaf{l.kind, append(slices.Clone(l.path), name), s})
	}
	for name, s := range l.schema.Properties {
		below(name, &s)
	}
	if l.schema.Items != nil {
		below("[]", l.schema.Items.Schema)
	}
	if l.schema.AdditionalProperties != nil {
		below("{}", l.schema.AdditionalProperties.Schema)
	}
	return all
}

// object returns an object of the leaf's kind that has nothing but the leaf.
func (l leaf) object(value any) map[string]any {
	for _, name := range slices.Backward(l.path) {
		switch name {
		case "[]":
			value = []any{value}
		case "{}":
			value = map[string]any{"key": value}
		default:
			value = map[string]any{name: value}
		}
	}
	return value.(map[string]any)
}

var goTypes = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}()

// unreadable returns what the kind's Go type cannot hold of an object.
func (l leaf) unreadable(t *testing.T, text []byte) string {
	t.Helper()
	into, err := goTypes.New(l.kind.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	if err := utiljson.Unmarshal(text, into); err != nil {
		return err.Error()
	}
	return lenient.SpecProblem(into.(metav1.Object)) + lenient.StatusProblem(into.(metav1.Object))
}

// check fails the test if a value of the leaf is valid and cannot be decoded. It decodes first, because that takes less time.
func (l leaf) check(t *testing.T, value any) {
	t.Helper()
	text, err := json.Marshal(l.object(value))
	if err != nil {
		t.Skip(err)
	}
	if problem := l.unreadable(t, text); problem != "" && l.isValid(t, text) {
		t.Errorf("%s: %s is valid and cannot be decoded: %s", l, text, problem)
	}
}

// isValid reports whether the schema has nothing against a value of the leaf, and against what it is in as a whole. What is
// missing beside it does not count: an attacker would add that.
func (l leaf) isValid(t *testing.T, text []byte) bool {
	t.Helper()
	rules, err := l.kind.rules()
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any // as kube-apiserver has it before it validates
	if err := utiljson.Unmarshal(text, &object); err != nil {
		return false
	}
	return !slices.ContainsFunc(rules.checkShape(object, nil), func(p *field.Error) bool { return p.Type != field.ErrorTypeRequired })
}

// hostileValues are JSON values that some schemas accept and some decoders do not.
var hostileValues = func() []any {
	values := []any{
		nil, true, 0, 1, -1, 1.5, 1e20, -1e20, 1e300, int64(1) << 53, int64(math.MaxInt64), int64(math.MinInt64), uint64(math.MaxUint64), 1 << 31, -1<<31 - 1, 65536,
		map[string]any{}, []any{}, map[string]any{"key": "value"}, map[string]any{"key": 1}, []any{"x"}, []any{1}, []any{nil}, map[string]any{"key": nil},
	}
	for _, text := range []string{
		"", " ", "x", "http", "0", "1", "+1", "-1", "1.", ".5", ".", "1Ki", "1.5Gi", "1ki", "1E", "1Ei", "1e3", "1E+3", "1e-3", "1e1.5", "1e.5", "1e", "e1", "1e99", "1e100", "1e-99",
		"99999999999999999999999999999", "0x1", "1_000", "٣", "NaN", "inf", "9223372036854775808", "80%", "1h", "1h30m", "100ms", "true", "null",
		"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456789+01:00", "2026-01-02t03:04:05z", "2026-01-02 03:04:05Z", "2026-01-02T03:04:60Z", "2026-01-02T24:00:00Z",
		"2026-02-30T03:04:05Z", "2026-13-02T03:04:05Z", "2026-01-02T03:04:05", "2026-01-02", "2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05,5Z", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z",
		"QUJD", "QUJD=", "!", "\x00", "\ufffd",
	} {
		values = append(values, text)
	}
	return values
}()

// What kube-apiserver accepts under the definitions, every component can decode: for each field of each kind, hostile values.
func TestValidIsDecodable(t *testing.T) {
	for kind, all := range leavesByKind() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for _, l := range all {
				for _, value := range hostileValues {
					l.check(t, value)
				}
			}
		})
	}
}

func leavesByKind() map[string][]leaf {
	all := map[string][]leaf{}
	for _, l := range leaves() {
		kind := l.kind.Definition.Spec.Names.Kind
		all[kind] = append(all[kind], l)
	}
	return all
}

// The schemas still accept what people write: a test in which everything is refused would prove nothing.
func TestUsualValuesAreValid(t *testing.T) {
	for path, values := range map[string][]any{
		"Bind9Instance.spec.storage.emptyDir.sizeLimit":                      {"1Gi", "500M", "1.5Gi", "1e9", "1E", "+1", 1024, "100m"},
		"Bind9Instance.spec.bindcarConfig.resources.limits.{}":               {"512Mi", "1", 1, "250m", "0.5", ".5"},
		"Bind9Instance.spec.bindcarConfig.serviceSpec.ports.[].targetPort":   {"dns", 53},
		"Bind9Instance.status.phaseSince":                                    {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456789+01:00"},
		"Bind9Cluster.spec.volumes.[].downwardAPI.items.[].mode":             {420},
		"DNSEndpoint.spec.endpoints.[].recordTTL":                            {300},
		"Bind9Instance.spec.bindcarConfig.serviceSpec.ports.[].port":         {53},
		"Bind9Instance.spec.config.dnssec.signing.keysFrom.persistentVolume": {map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}},
	} {
		i := slices.IndexFunc(leaves(), func(l leaf) bool { return l.String() == path })
		if i < 0 {
			t.Errorf("there is no field %s", path)
			continue
		}
		for _, value := range values {
			text, err := json.Marshal(leaves()[i].object(value))
			if err != nil {
				t.Fatal(err)
			}
			if !leaves()[i].isValid(t, text) || leaves()[i].unreadable(t, text) != "" {
				t.Errorf("%s: %v is refused", path, value)
			}
		}
	}
}

// FuzzValidIsDecodable puts any JSON value into any field.
func FuzzValidIsDecodable(f *testing.F) {
	for i, l := range leaves() {
		if l.schema.XIntOrString || l.schema.Format != "" {
			for _, text := range []string{`"1e1.5"`, `"1e999999999"`, `99999999999`, `"2026-01-02t03:04:05z"`} {
				f.Add(uint(i), text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, index uint, text string) {
		l := leaves()[index%uint(len(leaves()))]
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			t.Skipf("%q is no JSON", text)
		}
		l.check(t, value)
	})
}

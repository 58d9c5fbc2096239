package membership

import (
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

func requirement(key string, op metav1.LabelSelectorOperator, values ...string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
}

func TestSelectsRecord(t *testing.T) {
	match := metav1.LabelSelector{MatchLabels: map[string]string{"zone": "example.com"}}
	for name, test := range map[string]struct {
		selectors []metav1.LabelSelector
		namespace string
		want      bool
		message   string
	}{
		"no selector":             {nil, "dns", false, ""},
		"label":                   {[]metav1.LabelSelector{match}, "dns", true, ""},
		"other namespace":         {[]metav1.LabelSelector{match}, "other", false, ""},
		"other value":             {[]metav1.LabelSelector{{MatchLabels: map[string]string{"zone": "x"}}}, "dns", false, ""},
		"label is not there":      {[]metav1.LabelSelector{{MatchLabels: map[string]string{"x": ""}}}, "dns", false, ""},
		"everything":              {[]metav1.LabelSelector{{}}, "dns", true, ""},
		"any of two":              {[]metav1.LabelSelector{requirement("x", metav1.LabelSelectorOpExists), match}, "dns", true, ""},
		"In":                      {[]metav1.LabelSelector{requirement("zone", metav1.LabelSelectorOpIn, "x", "example.com")}, "dns", true, ""},
		"NotIn":                   {[]metav1.LabelSelector{requirement("zone", metav1.LabelSelectorOpNotIn, "example.com")}, "dns", false, ""},
		"NotIn without the label": {[]metav1.LabelSelector{requirement("x", metav1.LabelSelectorOpNotIn, "y")}, "dns", true, ""},
		"Exists":                  {[]metav1.LabelSelector{requirement("zone", metav1.LabelSelectorOpExists)}, "dns", true, ""},
		"DoesNotExist":            {[]metav1.LabelSelector{requirement("x", metav1.LabelSelectorOpDoesNotExist)}, "dns", true, ""},
		"unknown operator":        {[]metav1.LabelSelector{requirement("x", "Near")}, "dns", false, `spec.recordsFrom[0].selector.matchExpressions[0]: operator "Near"`},
		"In without values":       {[]metav1.LabelSelector{match, requirement("x", metav1.LabelSelectorOpIn)}, "dns", true, ""},
		"Exists with values":      {[]metav1.LabelSelector{{}, requirement("x", metav1.LabelSelectorOpExists, "y")}, "dns", true, ""},
		"NotIn without values":    {[]metav1.LabelSelector{requirement("x", metav1.LabelSelectorOpNotIn)}, "dns", false, "needs values"},
	} {
		t.Run(name, func(t *testing.T) {
			zone, record := exampleZone(), aRecord(object("www", 1), "www")
			zone.Namespace, zone.Spec.RecordsFrom = test.namespace, nil
			for _, s := range test.selectors {
				zone.Spec.RecordsFrom = append(zone.Spec.RecordsFrom, v1beta1.RecordSource{Selector: s})
			}
			got, err := SelectsRecord(zone, record)
			if got != test.want {
				t.Errorf("got %v", got)
			}
			if (err == nil) != (test.message == "") || (err != nil && !strings.Contains(err.Error(), test.message)) {
				t.Errorf("error %v, want %q", err, test.message)
			}
		})
	}
}

// Selectors mean here what they mean to Kubernetes.
func TestMatchesAsKubernetes(t *testing.T) {
	pick := func(r *rand.Rand, s ...string) string { return s[r.IntN(len(s))] }
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		var s metav1.LabelSelector
		for range r.IntN(3) {
			metav1.AddLabelToSelector(&s, pick(r, "a", "b", "c"), pick(r, "", "x", "y"))
		}
		for range r.IntN(3) {
			e := metav1.LabelSelectorRequirement{Key: pick(r, "a", "b", "c"), Operator: metav1.LabelSelectorOperator(pick(r, "In", "NotIn", "Exists", "DoesNotExist", "Odd"))}
			for range r.IntN(3) {
				e.Values = append(e.Values, pick(r, "", "x", "y"))
			}
			s.MatchExpressions = append(s.MatchExpressions, e)
		}
		set := labels.Set{}
		for range r.IntN(3) {
			set[pick(r, "a", "b", "c")] = pick(r, "", "x", "y")
		}
		got, _ := matchesLabels(&s, set)
		if theirs, err := metav1.LabelSelectorAsSelector(&s); err == nil && got != theirs.Matches(set) {
			t.Fatalf("%v on %v: %v", theirs, set, got)
		} else if err != nil && got {
			t.Fatalf("%+v cannot be read and matches %v", s, set)
		}
	}
}

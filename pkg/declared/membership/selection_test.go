package membership

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
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

// A zone takes a record of another namespace if both sides want that, and no zone of the record's own namespace has it. Nobody takes a record by
// labels of its own, and nobody puts one into a zone that did not select its namespace.
func TestRecordsOfOtherNamespaces(t *testing.T) {
	zone := func(namespace string, age int, from ...v1beta1.RecordSource) *v1beta1.DNSZone {
		z := exampleZone()
		z.Namespace, z.CreationTimestamp, z.Spec.RecordsFrom = namespace, metav1.NewTime(startOfTest.Add(-time.Duration(age)*time.Second)), from
		return z
	}
	web := metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	teams := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "yes"}}
	open := zone("platform", 10, v1beta1.RecordSource{Selector: web, NamespaceSelector: teams})
	for name, test := range map[string]struct {
		zones     []*v1beta1.DNSZone
		namespace map[string]string // labels of the record's
		allow     string
		labels    map[string]string
		want      string
	}{
		"both sides":                    {[]*v1beta1.DNSZone{open}, teams.MatchLabels, "platform", web.MatchLabels, "platform"},
		"anybody":                       {[]*v1beta1.DNSZone{zone("platform", 1, v1beta1.RecordSource{NamespaceSelector: &metav1.LabelSelector{}})}, map[string]string{}, "*", nil, "platform"},
		"the record does not want it":   {[]*v1beta1.DNSZone{open}, teams.MatchLabels, "", web.MatchLabels, ""},
		"the record wants another zone": {[]*v1beta1.DNSZone{open}, teams.MatchLabels, "others", web.MatchLabels, ""},
		"the namespace is not selected": {[]*v1beta1.DNSZone{open}, map[string]string{"team": "no"}, "platform", web.MatchLabels, ""},
		"the namespace is not known":    {[]*v1beta1.DNSZone{open}, nil, "platform", web.MatchLabels, ""},
		"other labels":                  {[]*v1beta1.DNSZone{open}, teams.MatchLabels, "platform", map[string]string{"app": "db"}, ""},
		"the zone takes its own only":   {[]*v1beta1.DNSZone{zone("platform", 1, v1beta1.RecordSource{Selector: web})}, teams.MatchLabels, "platform", web.MatchLabels, ""},
		"one selects the namespace, another the labels": {[]*v1beta1.DNSZone{zone("platform", 1, v1beta1.RecordSource{Selector: web},
			v1beta1.RecordSource{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, NamespaceSelector: teams})}, teams.MatchLabels, "platform", web.MatchLabels, ""},
		"a zone of its own comes first":                  {[]*v1beta1.DNSZone{open, zone("team", 1, v1beta1.RecordSource{Selector: web})}, teams.MatchLabels, "*", web.MatchLabels, "team"},
		"the older of two":                               {[]*v1beta1.DNSZone{open, zone("lure", 20, v1beta1.RecordSource{NamespaceSelector: &metav1.LabelSelector{}})}, teams.MatchLabels, "*", web.MatchLabels, "lure"},
		"the one that it names of two":                   {[]*v1beta1.DNSZone{open, zone("lure", 20, v1beta1.RecordSource{NamespaceSelector: &metav1.LabelSelector{}})}, teams.MatchLabels, "platform", web.MatchLabels, "platform"},
		"its own zone takes no records of its namespace": {[]*v1beta1.DNSZone{zone("team", 1), open}, teams.MatchLabels, "platform", web.MatchLabels, "platform"},
	} {
		cache := NewCache(test.zones...)
		record := aRecord(object("www", 1), "www")
		record.Namespace, record.Labels, record.Annotations = "team", test.labels, map[string]string{v1beta1.AllowZoneNamespacesAnnotation: test.allow}
		cache.SetObject(record)
		if test.namespace != nil {
			cache.SetNamespace("team", test.namespace)
		}
		got := ""
		if z := cache.ZoneOfRecord(record); z != nil {
			got = z.Namespace
		}
		for _, r := range cache.Roles(source.KeyOf(record)) {
			if (r.Role == Selected) != (r.Zone.Namespace == got) {
				t.Errorf("%s: role %d in %s", name, r.Role, r.Zone.Namespace)
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// What was published leaves the zone when either side takes its consent back. An annotation that somebody writes gives nobody a part in a zone
// that does not select his namespace.
func TestConsentThatEnds(t *testing.T) {
	open := exampleZone()
	open.Namespace, open.Spec.RecordsFrom[0].NamespaceSelector = "platform", &metav1.LabelSelector{MatchLabels: map[string]string{"team": "yes"}}
	published := aRecord(object("www", 1), "www")
	published.Namespace, published.Finalizers = "team", []string{v1beta1.Finalizer}
	published.Annotations = map[string]string{v1beta1.AllowZoneNamespacesAnnotation: "platform", v1beta1.ZoneAnnotation: "Example.com"}
	marked := published.DeepCopy()
	published.Status.ZoneRef = &v1beta1.ZoneReference{Namespace: "platform", Name: open.Name}
	for name, change := range map[string]func(c *Cache, record *v1beta1.ARecord){
		"the namespace is labeled otherwise": func(c *Cache, _ *v1beta1.ARecord) { c.SetNamespace("team", map[string]string{"team": "no"}) },
		"the namespace is gone":              func(c *Cache, _ *v1beta1.ARecord) { c.RemoveNamespace("team") },
		"the zone closes": func(c *Cache, _ *v1beta1.ARecord) {
			closed := open.DeepCopy()
			closed.Spec.RecordsFrom[0].NamespaceSelector = nil
			c.SetZone(closed)
		},
		"the record withdraws": func(c *Cache, record *v1beta1.ARecord) {
			record = record.DeepCopy()
			delete(record.Annotations, v1beta1.AllowZoneNamespacesAnnotation)
			c.SetObject(record)
		},
	} {
		for _, record := range []*v1beta1.ARecord{published, marked} {
			c := NewCache(open)
			c.SetNamespace("team", map[string]string{"team": "yes"})
			if c.SetObject(record); c.Member(KeyOfZone(open), source.KeyOf(record)).Role != Selected {
				t.Fatalf("%s: the record is not the zone's at first", name)
			}
			change(c, record)
			want := Leaving
			if record == marked { // Nobody but the annotation says that it was ever published.
				want = NoRole
			}
			if got := c.Member(KeyOfZone(open), source.KeyOf(record)).Role; got != want {
				t.Errorf("%s: role %d, want %d", name, got, want)
			}
		}
	}
}

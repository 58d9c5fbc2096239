package source

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

func requirement(key string, op metav1.LabelSelectorOperator, values ...string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
}

func TestSelects(t *testing.T) {
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
			got, err := Selects(zone, record)
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
		got, _ := matches(&s, set)
		if theirs, err := metav1.LabelSelectorAsSelector(&s); err == nil && got != theirs.Matches(set) {
			t.Fatalf("%v on %v: %v", theirs, set, got)
		} else if err != nil && got {
			t.Fatalf("%+v cannot be read and matches %v", s, set)
		}
	}
}

func zoneNamed(name string, age int) *v1beta1.DNSZone {
	z := exampleZone()
	z.ObjectMeta = object(name, age)
	z.Spec.ClusterRef = "prod"
	return z
}

func zoneNames(zones ...*v1beta1.DNSZone) []string {
	var names []string
	for _, z := range zones {
		if z != nil {
			names = append(names, z.Name)
		}
	}
	return names
}

func TestZonesFor(t *testing.T) {
	young, old, twin := zoneNamed("young", 1), zoneNamed("old", 3), zoneNamed("twin", 3)
	blind := zoneNamed("blind", 9)
	blind.Spec.RecordsFrom = nil
	broken := zoneNamed("broken", 9)
	broken.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: requirement("x", "Near")}}
	zones := []*v1beta1.DNSZone{young, broken, twin, blind, old}
	record := aRecord(object("www", 1), "www")
	if diff := cmp.Diff([]string{"old", "twin", "young"}, zoneNames(ZonesFor(zones, record)...)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"old"}, zoneNames(ZoneOf(zones, record))); diff != "" {
		t.Error(diff)
	}
	record.Labels = nil
	if got := ZoneOf(zones, record); got != nil {
		t.Errorf("%s selects a record without labels", got.Name)
	}
}

func instance(namespace, name, cluster string) *v1beta1.Bind9Instance {
	return &v1beta1.Bind9Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": cluster}},
		Spec:       v1beta1.Bind9InstanceSpec{ClusterRef: cluster},
	}
}

func owned(i *v1beta1.Bind9Instance, kind string) *v1beta1.Bind9Instance {
	i.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: kind, Name: i.Spec.ClusterRef}}
	return i
}

func allowing(i *v1beta1.Bind9Instance, namespaces string) *v1beta1.Bind9Instance {
	i.Annotations = map[string]string{v1beta1.AllowZoneNamespacesAnnotation: namespaces}
	return i
}

func TestInstancesOf(t *testing.T) {
	all := []*v1beta1.Bind9Instance{
		instance("dns", "prod-primary-10", "prod"), instance("dns", "prod-primary-2", "prod"),
		instance("dns", "prod-secondary-0", "prod"), instance("dns", "alone", ""),
		instance("other", "prod-primary-0", "prod"),
		owned(instance("infra", "global-primary-0", "global"), "Bind9GlobalCluster"),
		owned(instance("infra", "edge-primary-0", "edge"), "ClusterBind9Provider"),
		owned(instance("evil", "global-primary-0", "global"), "Bind9Cluster"),
		allowing(instance("shared", "open", "x"), "*"), allowing(instance("shared", "ours", "x"), "web, dns"),
		allowing(instance("shared", "theirs", "x"), "dns2"),
	}
	byApp := func(app string) func(*v1beta1.DNSZoneSpec) {
		return func(s *v1beta1.DNSZoneSpec) {
			s.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
		}
	}
	for name, test := range map[string]struct {
		spec func(*v1beta1.DNSZoneSpec)
		want []string
	}{
		"none":               {func(*v1beta1.DNSZoneSpec) {}, nil},
		"cluster":            {func(s *v1beta1.DNSZoneSpec) { s.ClusterRef = "prod" }, []string{"dns/prod-primary-2", "dns/prod-primary-10", "dns/prod-secondary-0"}},
		"global cluster":     {func(s *v1beta1.DNSZoneSpec) { s.ClusterRef = "global" }, []string{"infra/global-primary-0"}},
		"cluster provider":   {func(s *v1beta1.DNSZoneSpec) { s.ClusterProviderRef = "edge" }, []string{"infra/edge-primary-0"}},
		"no cluster by that": {func(s *v1beta1.DNSZoneSpec) { s.ClusterProviderRef = "prod" }, nil},
		"selected":           {byApp(""), []string{"dns/alone"}},
		"allowed elsewhere":  {byApp("x"), []string{"shared/open", "shared/ours"}},
		"union": {func(s *v1beta1.DNSZoneSpec) {
			s.ClusterRef, s.ClusterProviderRef = "prod", "edge"
			byApp("prod")(s)
		}, []string{"dns/prod-primary-2", "dns/prod-primary-10", "dns/prod-secondary-0", "infra/edge-primary-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, i := range InstancesOf(zoneWith(test.spec), all) {
				got = append(got, i.Namespace+"/"+i.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDuplicate(t *testing.T) {
	servers := []*v1beta1.Bind9Instance{instance("dns", "prod-primary-0", "prod"), instance("dns", "test-primary-0", "test")}
	zone := zoneNamed("zone", 5)
	older, oldest, younger := zoneNamed("older", 6), zoneNamed("oldest", 7), zoneNamed("younger", 4)
	oldest.Spec.ZoneName = "EXAMPLE.com."
	elsewhere := zoneNamed("elsewhere", 9)
	elsewhere.Spec.ClusterRef = "test"
	otherName := zoneNamed("other-name", 9)
	otherName.Spec.ZoneName = "example.org"
	broken := zoneNamed("broken", 9)
	broken.Spec.ZoneName = "a..b"
	for name, test := range map[string]struct {
		zones     []*v1beta1.DNSZone
		instances []*v1beta1.Bind9Instance
		want      []string
	}{
		"alone":           {[]*v1beta1.DNSZone{zone}, servers, nil},
		"older":           {[]*v1beta1.DNSZone{zone, older, younger}, servers, []string{"older"}},
		"the oldest":      {[]*v1beta1.DNSZone{older, oldest, zone}, servers, []string{"oldest"}},
		"younger":         {[]*v1beta1.DNSZone{younger, zone}, servers, nil},
		"other servers":   {[]*v1beta1.DNSZone{elsewhere, zone}, servers, nil},
		"other name":      {[]*v1beta1.DNSZone{otherName, broken, zone}, servers, nil},
		"without servers": {[]*v1beta1.DNSZone{older, zone}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, zoneNames(Duplicate(zone, test.zones, test.instances))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func BenchmarkZoneOf(b *testing.B) {
	zones := make([]*v1beta1.DNSZone, 1000)
	for i := range zones {
		zones[i] = zoneNamed("z", i)
		zones[i].Spec.RecordsFrom[0].Selector = metav1.LabelSelector{MatchLabels: map[string]string{"zone": string(rune('a' + i%26))}}
	}
	record := aRecord(object("www", 1), "www")
	b.ReportAllocs()
	for b.Loop() {
		ZoneOf(zones, record)
	}
}

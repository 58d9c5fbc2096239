package membership

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

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

func TestZoneOfRecord(t *testing.T) {
	young, old, twin := zoneNamed("young", 1), zoneNamed("old", 3), zoneNamed("twin", 3)
	old.UID, twin.UID = "2", "1" // Of one second: chance does not decide.
	blind := zoneNamed("blind", 9)
	blind.Spec.RecordsFrom = nil
	broken := zoneNamed("broken", 9)
	broken.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: requirement("x", "Near")}}
	zones := []*v1beta1.DNSZone{young, broken, twin, blind, old}
	record := aRecord(object("www", 1), "www")
	if diff := cmp.Diff([]string{"old", "twin", "young"}, zoneNames((namespaceLabels{}).zonesSelecting(zones, record)...)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"old"}, zoneNames(NewCache(zones...).ZoneOfRecord(record))); diff != "" {
		t.Error(diff)
	}
	record.Labels = nil
	if got := NewCache(zones...).ZoneOfRecord(record); got != nil {
		t.Errorf("%s selects a record without labels", got.Name)
	}
}

func TestDuplicates(t *testing.T) {
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
			got := NewFleet(FleetObjects{Instances: test.instances}, "").RefusalOf(zone, NewCache(test.zones...))
			if test.want == nil && got != (Refusal{}) || test.want != nil && (got.Reason != "DuplicateZone" || !strings.Contains(got.Message, "dns/"+test.want[0]+" ")) {
				t.Errorf("%+v, want a duplicate of %s", got, test.want)
			}
		})
	}
}

func TestZoneOfEndpoint(t *testing.T) {
	zone := func(namespace, name, zoneName string, age int, admits string) *v1beta1.DNSZone {
		z := &v1beta1.DNSZone{ObjectMeta: object(name, age), Spec: v1beta1.DNSZoneSpec{ZoneName: zoneName}}
		z.Namespace = namespace
		if admits != "" {
			z.Annotations = map[string]string{v1beta1.AllowEndpointNamespacesAnnotation: admits}
		}
		return z
	}
	zones := []*v1beta1.DNSZone{
		zone("app", "own", "Example.com", 1, ""), zone("infra", "shared", "example.com", 9, "*"), zone("infra", "older", "shared.org", 9, "app, web"),
		zone("web", "younger", "shared.org", 1, "*"), zone("infra", "deep", "prod.example.com", 1, "app, admitted"), zone("infra", "closed", "closed.example.com", 1, ""),
		zone("evil", "lure", "www.shared.org", 1, "*"), zone("app", "bad", "a..b", 1, ""), zone("app", "reverse", "2.0.192.in-addr.arpa", 1, ""),
	}
	cache := NewCache(zones...)
	for name, test := range map[string]struct{ namespace, dnsName, want string }{
		"own before shared":             {"app", "www.example.com", "own"},
		"the apex, with dot, any case":  {"app", "EXAMPLE.com.", "own"},
		"shared with everybody":         {"other", "www.example.com", "shared"},
		"own before a longer one":       {"app", "www.prod.example.com", "own"},
		"the longest":                   {"admitted", "www.prod.example.com", "deep"},
		"one that it does not admit":    {"other", "www.shared.org", "younger"},
		"the longest does not admit":    {"other", "www.prod.example.com", "shared"},
		"one that admits nobody else":   {"app", "www.closed.example.com", "own"},
		"its own namespace":             {"infra", "www.closed.example.com", "closed"},
		"the older of two":              {"app", "shared.org", "older"},
		"own of two, though younger":    {"web", "a.shared.org", "younger"},
		"not in the list":               {"other", "a.shared.org", "younger"},
		"no label boundary":             {"app", "badexample.com", ""},
		"escaped dot is none":           {"app", `www\.example.com`, ""},
		"none":                          {"app", "example.net", ""},
		"above":                         {"app", "com", ""},
		"a bad name":                    {"admitted", "a..b.prod.example.com", "deep"},
		"a name in another script":      {"app", "bücher.example.com", "own"},
		"reverse":                       {"app", "7.2.0.192.in-addr.arpa", "reverse"},
		"empty":                         {"app", "", ""},
		"a wildcard belongs as well":    {"admitted", "*.prod.example.com", "deep"},
		"the whole name is one's label": {"app", "xprod.example.com", "own"},
	} {
		t.Run(name, func(t *testing.T) {
			e := endpointOf(test.namespace, "infra, web")
			for by, zone := range map[string]*v1beta1.DNSZone{
				"cache": cache.ZoneOfEndpoint(e, test.dnsName), "all zones": zoneOfEndpoint(zones, e, test.dnsName),
			} {
				got := ""
				if zone != nil {
					got = zone.Name
				}
				if got != test.want {
					t.Errorf("%s: %q, want %q", by, got, test.want)
				}
			}
		})
	}
}

func BenchmarkZoneOfRecord(b *testing.B) {
	zones := make([]*v1beta1.DNSZone, 1000)
	for i := range zones {
		zones[i] = zoneNamed(fmt.Sprintf("z%d", i), i)
		zones[i].Spec.RecordsFrom[0].Selector = metav1.LabelSelector{MatchLabels: map[string]string{"zone": string(rune('a' + i%26))}}
	}
	cache := NewCache(zones...)
	record := aRecord(object("www", 1), "www")
	b.ReportAllocs()
	for b.Loop() {
		cache.ZoneOfRecord(record)
	}
}

// A zone that its own declaration keeps from every server is expected on none; one that waits for addresses is where it was.
func TestServable(t *testing.T) {
	for reason, want := range map[string][2]bool{ // before it was served, and since
		status.ReconcileSucceeded: {true, true}, status.PrimaryFailed: {true, true}, status.AddressPending: {false, true},
		status.DuplicateZone: {false, false}, status.NotPermitted: {false, false}, status.ReconcileFailed: {false, false},
	} {
		zone := &v1beta1.DNSZone{}
		zone.Status.Conditions = []metav1.Condition{{Type: status.Ready, Reason: reason}}
		before := Servable(zone)
		zone.Status.Serial = new(int64)
		if got := [2]bool{before, Servable(zone)}; got != want {
			t.Errorf("%s: %v, want %v", reason, got, want)
		}
	}
}

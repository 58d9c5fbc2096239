package membership

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
)

// After any sequence of changes the cache finds the very zone that a look at all zones finds.
func TestCacheFindsAsALookAtAllZones(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		cache, stored := NewCache(), map[ZoneKey]*v1beta1.DNSZone{}
		for range 40 {
			zone := randomZone(r)
			if key := KeyOfZone(zone); r.IntN(4) == 0 {
				delete(stored, key)
				cache.RemoveZone(key)
			} else {
				stored[key] = zone
				cache.SetZone(zone)
			}
			compareLookups(t, cache, stored, randomRecord(r))
		}
	}
}

func compareLookups(t *testing.T, cache *Cache, stored map[ZoneKey]*v1beta1.DNSZone, record v1beta1.Record) {
	t.Helper()
	var all, same []*v1beta1.DNSZone
	inNamespace := 0
	for _, zone := range stored {
		all = append(all, zone)
		if declaration.DNSName(zone) == "0.test" {
			same = append(same, zone)
		}
		if zone.Namespace == record.GetNamespace() {
			inNamespace++
		}
	}
	if want, got := firstOf((namespaceLabels{}).zonesSelecting(all, record)), cache.ZoneOfRecord(record); want != got {
		t.Fatalf("labels %v: found %v, want %v", record.GetLabels(), got, want)
	}
	endpoint := endpointOf("x", "y")
	for _, name := range []string{"0.test", "A.1.TEST.", "a.b.2.test", "test", "10.test", `a\.0.test`, "", "."} {
		if want, got := zoneOfEndpoint(all, endpoint, name), cache.ZoneOfEndpoint(endpoint, name); want != got {
			t.Fatalf("%s: found %v, want %v", name, got, want)
		}
	}
	if got := cache.ZonesNamed("0.TEST."); len(got) != len(same) {
		t.Fatalf("%d zones of the name, want %d", len(got), len(same))
	}
	if got := cache.CountZones(record.GetNamespace()); got != inNamespace {
		t.Fatalf("zones in %s: %d, want %d", record.GetNamespace(), got, inNamespace)
	}
	if got := cache.CountZones(""); got != len(stored) || len(cache.Zones()) != got {
		t.Fatalf("%d zones, want %d", got, len(stored))
	}
	if len(stored) == 0 && len(cache.selectors)+len(cache.byName)+len(cache.perNamespace)+len(cache.zones) > 0 {
		t.Fatalf("a cache of nothing holds %v", cache)
	}
}

func firstOf(zones []*v1beta1.DNSZone) *v1beta1.DNSZone {
	if len(zones) == 0 {
		return nil
	}
	return zones[0]
}

func randomZone(r *rand.Rand) *v1beta1.DNSZone {
	n := r.IntN(6)
	zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{
		Namespace: []string{"x", "y"}[r.IntN(2)], Name: fmt.Sprint(n), UID: types.UID(fmt.Sprint(n)),
		CreationTimestamp: metav1.NewTime(time.Unix(int64(r.IntN(3)), 0)),
	}}
	zone.Spec.ZoneName = []string{"0.test", "1.test", "b.2.test", "2.test", "test"}[r.IntN(5)]
	if r.IntN(2) == 0 {
		zone.Annotations = map[string]string{v1beta1.AllowEndpointNamespacesAnnotation: "x"}
	}
	operators := []metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Like"}
	for range r.IntN(3) {
		selector := metav1.LabelSelector{}
		for range r.IntN(3) {
			metav1.AddLabelToSelector(&selector, randomKey(r), randomKey(r))
		}
		for range r.IntN(2) {
			requirement := metav1.LabelSelectorRequirement{Key: randomKey(r), Operator: operators[r.IntN(len(operators))]}
			for range r.IntN(3) {
				requirement.Values = append(requirement.Values, randomKey(r))
			}
			selector.MatchExpressions = append(selector.MatchExpressions, requirement)
		}
		zone.Spec.RecordsFrom = append(zone.Spec.RecordsFrom, v1beta1.RecordSource{Selector: selector})
	}
	return zone
}

func randomRecord(r *rand.Rand) v1beta1.Record {
	record := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: []string{"x", "y"}[r.IntN(2)], Name: "a", Labels: map[string]string{}}}
	for range r.IntN(4) {
		record.Labels[randomKey(r)] = randomKey(r)
	}
	return record
}

func randomKey(r *rand.Rand) string { return []string{"a", "b", "c"}[r.IntN(3)] }

// Ten thousand zones that share a label are told apart by the other one.
func BenchmarkZoneOfRecordAmongMany(b *testing.B) {
	for _, zones := range []int{10, 10000} {
		b.Run(fmt.Sprint(zones), func(b *testing.B) {
			cache := NewCache()
			for i := range zones {
				zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: fmt.Sprint(i)}}
				zone.Spec.ZoneName = fmt.Sprintf("%d.test", i)
				labels := map[string]string{"env": "prod", "zone": fmt.Sprint(i)}
				zone.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: labels}}}
				cache.SetZone(zone)
			}
			record := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "a", Labels: map[string]string{"env": "prod", "zone": "7", "app": "web"}}}
			for b.Loop() {
				if cache.ZoneOfRecord(record) == nil {
					b.Fatal("not found")
				}
			}
		})
	}
}

// A stranger with many zones of somebody's name does not slow down the search for the zone of each endpoint there.
func TestZonesOfStrangersCostNothing(t *testing.T) {
	zone := func(namespace string, n int) *v1beta1.DNSZone {
		return &v1beta1.DNSZone{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(n), Annotations: map[string]string{v1beta1.AllowEndpointNamespacesAnnotation: "*"}},
			Spec:       v1beta1.DNSZoneSpec{ZoneName: "bank.example"},
		}
	}
	cache, endpoint := NewCache(zone("bank", 0)), &metav1.ObjectMeta{Namespace: "bank", Name: "x"}
	fastest := func() time.Duration {
		least := time.Hour
		for range 200 {
			began := time.Now()
			if z := cache.ZoneOfEndpoint(endpoint, "www.bank.example"); z == nil || z.Namespace != "bank" {
				t.Fatalf("the zone is %v", z)
			}
			least = min(least, time.Since(began))
		}
		return least
	}
	alone := fastest()
	for n := range 1000 {
		cache.SetZone(zone("stranger", n))
	}
	if beside := fastest(); beside > 20*alone+20*time.Microsecond {
		t.Errorf("beside 1,000 zones of a stranger it takes %v, without them %v", beside, alone)
	}
}

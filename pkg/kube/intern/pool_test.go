package intern

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// decoded returns a record as an informer decodes it: number n of a zone that has many.
func decoded(t testing.TB, n int) *v1beta1.ARecord {
	t.Helper()
	condition := func(kind string) string {
		return `{"type":"` + kind + `","status":"True","reason":"ReconcileSucceeded","message":"","observedGeneration":1,"lastTransitionTime":"2026-11-22T10:00:00Z"}`
	}
	text := fmt.Sprintf(`{"apiVersion":"bindy.firestoned.io/v1beta1","kind":"ARecord","metadata":{"name":"host-%[1]d","namespace":"bench-objects",
	"uid":"7d6a9c9e-0000-4000-8000-%012[1]d","resourceVersion":"%[1]d","generation":1,"creationTimestamp":"2026-11-22T10:00:00Z","labels":{"bench-zone":"objects"},
	"annotations":{"bindy.firestoned.io/zone":"objects.example"},"finalizers":["bindy.firestoned.io/finalizer"],
	"managedFields":[{"manager":"bench","operation":"Update","apiVersion":"bindy.firestoned.io/v1beta1","time":"2026-11-22T10:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]},
	"spec":{"name":"host-%[1]d","ipv4Addresses":["10.0.%[2]d.%[3]d"]},
	"status":{"conditions":[%[4]s],"observedGeneration":1,"zone":"objects.example","recordHash":"%064[1]d","lastUpdated":"2026-11-22T10:00:00Z",
	"addresses":"10.0.%[2]d.%[3]d","publishedName":"host-%[1]d.objects.example",
	"zoneRef":{"apiVersion":"bindy.firestoned.io/v1beta1","kind":"DNSZone","name":"objects","namespace":"bench-objects","zoneName":"objects.example","lastReconciledAt":"2026-11-22T10:00:00Z"}}}`,
		n, n>>8&255, n&255, condition("Ready")+","+condition("Accepted")+","+condition("Programmed"))
	o := &v1beta1.ARecord{}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func transform[T any](t testing.TB, p *Pool, o T) T {
	t.Helper()
	out, err := p.Transform(o)
	if err != nil {
		t.Fatal(err)
	}
	return out.(T)
}

// isSame reports whether two maps, slices or pointers are one in memory.
func isSame(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }

func TestObjectsShareWhatIsEqual(t *testing.T) {
	p := &Pool{}
	a, b := transform(t, p, decoded(t, 1)), transform(t, p, decoded(t, 2))
	for what, same := range map[string]bool{
		"labels":      isSame(a.Labels, b.Labels),
		"annotations": isSame(a.Annotations, b.Annotations),
		"finalizers":  isSame(a.Finalizers, b.Finalizers),
		"conditions":  isSame(a.Status.Conditions, b.Status.Conditions),
		"reference":   isSame(a.Status.ZoneRef, b.Status.ZoneRef),
		"time":        isSame(a.Status.LastUpdated, b.Status.LastUpdated),
	} {
		if !same {
			t.Errorf("%s: two copies of one value", what)
		}
	}
	other := decoded(t, 3)
	other.Labels["bench-zone"], other.Status.Conditions[0].Status, other.Status.ZoneRef.ZoneName = "other", metav1.ConditionFalse, "other.example"
	other = transform(t, p, other)
	if isSame(a.Labels, other.Labels) || isSame(a.Status.Conditions, other.Status.Conditions) || isSame(a.Status.ZoneRef, other.Status.ZoneRef) {
		t.Error("different values are one")
	}
}

// Whatever is in an object, it says the same afterwards, but for what nobody reads.
func TestNothingElseChanges(t *testing.T) {
	p := &Pool{}
	for seed := range int64(300) {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		fill := randfill.NewWithSeed(seed).NilChance(.3).NumElements(0, 5).MaxDepth(12)
		for _, o := range []metav1.Object{&v1beta1.ARecord{}, &v1beta1.DNSZone{}, &v1alpha1.DNSEndpoint{}, &corev1.Pod{}, &metav1.PartialObjectMetadata{}} {
			fillObject(fill, r, o)
			want := reflect.ValueOf(o).MethodByName("DeepCopyObject").Call(nil)[0].Interface().(metav1.Object)
			want.SetManagedFields(nil)
			kept := want.GetAnnotations()
			delete(kept, corev1.LastAppliedConfigAnnotation)
			if !slices.Contains([]string{"*v1.Pod", "*v1.PartialObjectMetadata"}, fmt.Sprintf("%T", o)) {
				_, isZone := o.(*v1beta1.DNSZone)
				maps.DeleteFunc(kept, func(key, _ string) bool {
					return key != v1beta1.PausedAnnotation && (key != v1beta1.FormerNamesAnnotation || isZone)
				})
			}
			want.SetAnnotations(kept)
			if diff := cmp.Diff(want, transform(t, p, o), equalEmpty); diff != "" {
				t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
			}
		}
	}
}

// fillObject makes objects of a few values, so that some are equal.
func fillObject(fill *randfill.Filler, r *rand.Rand, o metav1.Object) {
	text := func(s *string, _ randfill.Continue) {
		*s = strings.Repeat(string(rune('a'+r.IntN(3))), []int{0, 1, 2, maxBytes, maxBytes + 1}[r.IntN(5)])
	}
	instant := func(at *metav1.Time, _ randfill.Continue) { *at = metav1.Unix(int64(r.IntN(3)), 0) }
	fill.Funcs(text, instant).Fill(o)
	if r.IntN(2) == 0 {
		o.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "a": "b", v1beta1.PausedAnnotation: "true", v1beta1.FormerNamesAnnotation: "a/A"})
	}
}

// equalEmpty takes nil and empty for equal, as the API does.
var equalEmpty = cmp.Options{
	cmp.FilterValues(func(a, b map[string]string) bool { return len(a)+len(b) == 0 }, cmp.Ignore()),
	cmp.FilterValues(func(a, b []string) bool { return len(a)+len(b) == 0 }, cmp.Ignore()),
	cmp.FilterValues(func(a, b []metav1.Condition) bool { return len(a)+len(b) == 0 }, cmp.Ignore()),
}

// Other caches read what an object shares, while it is transformed a second time; the race detector watches.
func TestWhatIsSharedIsNotWritten(t *testing.T) {
	p := &Pool{}
	cached, again := transform(t, p, decoded(t, 1)), transform(t, p, decoded(t, 2))
	var wg sync.WaitGroup
	wg.Go(func() { cached.DeepCopy() })
	wg.Go(func() { _, _ = p.Transform(again) })
	wg.Wait()
}

func TestAPoolIsBounded(t *testing.T) {
	p := &Pool{}
	record := decoded(t, 0)
	var wg sync.WaitGroup
	for part := range 4 {
		wg.Go(func() {
			for n := range 2 * maxValues {
				o := record.DeepCopy()
				o.Name = fmt.Sprint("host-", n)
				o.Labels["app"] = fmt.Sprint(part, "/", n)
				o.Annotations["large"] = strings.Repeat("x", maxBytes) + o.Name
				transform(t, p, o)
			}
		})
	}
	wg.Wait()
	if n := len(p.maps); n == 0 || n > maxValues {
		t.Errorf("%d maps", n)
	}
	for text := range maps.Keys(p.maps) {
		if len(text) > maxBytes {
			t.Fatalf("%d bytes are kept for others", len(text))
		}
	}
}

// BenchmarkRecords is the memory of a record in a cache.
func BenchmarkRecords(b *testing.B) {
	const count = 20_000
	for name, p := range map[string]*Pool{"alone": nil, "shared": {}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := heapBytes()
				kept := make([]*v1beta1.ARecord, count)
				for n := range kept {
					kept[n] = decoded(b, n)
					if kept[n].ManagedFields = nil; p != nil {
						kept[n] = transform(b, p, kept[n])
					}
				}
				b.ReportMetric((heapBytes()-before)/count, "B/record")
				runtime.KeepAlive(kept)
			}
		})
	}
}

func heapBytes() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

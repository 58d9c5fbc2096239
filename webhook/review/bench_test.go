package review

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/lockstep-dns/lockstep/manifests"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/kube/schema"
)

const (
	benchZones   = 10_000
	benchRecords = 100_000
	benchReviews = 5_000
)

// BenchmarkAdmission measures the call that marks and reviews a new record, over HTTPS with many zones and records in the caches, beside the same round
// trip to a handler that looks at nothing, and beside the CEL rules of the definition. Each is a line RESULT, as those of
// test/bench are.
func BenchmarkAdmission(b *testing.B) {
	log.SetLogger(logr.Discard())
	objects := filled(b, many())
	answers := map[string]http.Handler{
		"bare":   http.HandlerFunc(bare),
		"mutate": &admission.Webhook{Handler: NewMarkingHandler(NewHandler(objects), nil)},
	}
	bodies, raws := reviews(b)
	times := map[string][]time.Duration{}
	for round := range 3 { // In turns, so that other load on the machine meets all alike; the first is to warm up.
		for _, name := range []string{"bare", "mutate"} {
			took := post(b, answers[name], bodies)
			if round > 0 {
				times[name] = append(times[name], took...)
			}
		}
		times["cel"] = append(times["cel"], rules(b, raws)...)
	}
	for range b.N {
		// The figures are percentiles, not means: b.N is not asked.
	}
	for _, reference := range []string{"bare", "cel"} {
		for _, p := range []int{50, 99} {
			ours, other := percentile(times["mutate"], p), percentile(times[reference], p)
			fmt.Printf("RESULT admission-mutate-%s-p%d ratio=%.2f ours=%s reference=%s (%s)\n", reference, p, float64(ours)/float64(other), ours, other,
				map[string]string{"bare": "the bare HTTPS round trip", "cel": "schema and CEL rules of the definition, in process"}[reference])
		}
	}
}

// many are zones of one namespace that share a label, with ten records each.
func many() map[string][]client.Object {
	all := map[string][]client.Object{}
	created := metav1.NewTime(time.Unix(1_700_000_000, 0))
	for i := range benchZones {
		z := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: fmt.Sprint("z", i), UID: types.UID(fmt.Sprint("z", i)), CreationTimestamp: created}}
		z.Spec.ZoneName, z.Spec.ClusterRef = fmt.Sprintf("z%d.example", i), "dns"
		z.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns1." + z.Spec.ZoneName + ".", AdminEmail: "a@example.com"}
		z.Spec.RecordsFrom = []v1beta1.RecordSource{{Selector: metav1.LabelSelector{MatchLabels: benchLabels(i)}}}
		all["dnszones"] = append(all["dnszones"], z)
	}
	for i := range benchRecords {
		r := benchRecord(i, fmt.Sprint("r", i))
		r.UID, r.CreationTimestamp = types.UID(r.Name), created
		r.Annotations = map[string]string{v1beta1.ZoneAnnotation: fmt.Sprintf("z%d.example", i%benchZones)}
		all["arecords"] = append(all["arecords"], r)
	}
	return all
}

func benchLabels(zone int) map[string]string {
	return map[string]string{"env": "prod", "zone": fmt.Sprint("z", zone)}
}

func benchRecord(i int, name string) *v1beta1.ARecord {
	r := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name, Labels: benchLabels(i % benchZones)}}
	r.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ARecord"}
	r.Spec.Name, r.Spec.IPv4Addresses = fmt.Sprint("host-", i/benchZones), []string{"192.0.2.1"}
	return r
}

// reviews are creations of records, each in another zone beside what that has, as kube-apiserver sends them.
func reviews(b *testing.B) (bodies, raws [][]byte) {
	for i := range benchReviews {
		raw, err := json.Marshal(benchRecord(i*7, fmt.Sprint("new-", i)))
		if err != nil {
			b.Fatal(err)
		}
		review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
			UID: "u", Kind: metav1.GroupVersionKind{Group: v1beta1.GroupName, Version: "v1beta1", Kind: "ARecord"}, Namespace: "dns", Operation: admissionv1.Create,
		}}
		review.Request.Object.Raw = raw
		review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
		body, err := json.Marshal(review)
		if err != nil {
			b.Fatal(err)
		}
		bodies, raws = append(bodies, body), append(raws, raw)
	}
	return bodies, raws
}

// bare reads a review and allows it.
func bare(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u","allowed":true}}`)
}

// post sends the reviews one after the other on one connection, as kube-apiserver keeps one.
func post(b *testing.B, handler http.Handler, bodies [][]byte) []time.Duration {
	server := httptest.NewTLSServer(handler)
	defer server.Close()
	var times []time.Duration
	for _, body := range bodies {
		began := time.Now()
		answer, err := server.Client().Post(server.URL, "application/json", bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if took := time.Since(began); err != nil || !bytes.Contains(text, []byte(`"allowed":true`)) {
			b.Fatalf("%v: %s", err, text)
		} else {
			times = append(times, took)
		}
		_ = answer.Body.Close()
	}
	return times
}

// rules evaluates schema and CEL rules of the same records.
func rules(b *testing.B, raws [][]byte) []time.Duration {
	kinds, err := schema.Load(manifests.Definitions())
	if err != nil {
		b.Fatal(err)
	}
	kind := kinds[v1beta1.GroupVersion.WithKind("ARecord")]
	if _, err := kind.Admit(b.Context(), map[string]any{}, nil); err != nil { // compiles
		b.Fatal(err)
	}
	var times []time.Duration
	for _, raw := range raws {
		began := time.Now()
		object := map[string]any{}
		if err := utiljson.Unmarshal(raw, &object); err != nil {
			b.Fatal(err)
		}
		delete(object, "status")
		problems, err := kind.Admit(b.Context(), object, nil)
		if err != nil || len(problems) > 0 {
			b.Fatal(err, problems)
		}
		times = append(times, time.Since(began))
	}
	return times
}

func percentile(times []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[(len(sorted)-1)*p/100].Round(time.Microsecond)
}

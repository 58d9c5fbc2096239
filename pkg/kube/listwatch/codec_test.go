package listwatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/meta"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

// decoderOf returns a decoder of the events of a stream, as a watch of client-go has it.
func decoderOf(t testing.TB, codecs runtime.NegotiatedSerializer, stream io.Reader) *restwatch.Decoder {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		t.Fatal("no codec for JSON")
	}
	frames := info.StreamSerializer.NewFrameReader(io.NopCloser(stream))
	return restwatch.NewDecoder(streaming.NewDecoder(frames, info.StreamSerializer.Serializer), codecs.DecoderToVersion(info.Serializer, v1beta1.GroupVersion))
}

func clients(t testing.TB) *Clients {
	t.Helper()
	c, err := NewClients(&rest.Config{Host: "https://kubernetes.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sameAsClientGo checks that a stream has the events that client-go finds in it, and ends with the same error.
func sameAsClientGo(t *testing.T, scheme *runtime.Scheme, stream string) (last error) {
	t.Helper()
	ours := decoderOf(t, newCodecs(scheme), strings.NewReader(stream))
	theirs := decoderOf(t, serializer.NewCodecFactory(scheme).WithoutConversion(), strings.NewReader(stream))
	for {
		event, object, err := ours.Decode()
		wantEvent, want, wantErr := theirs.Decode()
		if event != wantEvent || (err == nil) != (wantErr == nil) {
			t.Fatalf("event %q, %v, want %q, %v, of %s", event, err, wantEvent, wantErr, stream)
		}
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(object, want) {
			t.Fatalf("objects differ, -want +got:\n%s\nof %s", cmp.Diff(want, object), stream)
		}
	}
}

func streamOf(t testing.TB, kind watch.EventType, objects ...any) string {
	t.Helper()
	var stream bytes.Buffer
	for _, o := range objects {
		raw, ok := o.(string)
		if !ok {
			data, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			raw = string(data)
		}
		fmt.Fprintf(&stream, "{\"type\":%q,\"object\":%s}\n", kind, raw)
	}
	return stream.String()
}

// TestSameAsClientGo decodes random objects of each kind as client-go does.
func TestSameAsClientGo(t *testing.T) {
	scheme := clients(t).scheme
	seed := rand.Int63()
	t.Logf("seed %d", seed)
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), serializer.NewCodecFactory(scheme))
	for kind := range scheme.AllKnownTypes() {
		if kind.Group == "" || strings.HasSuffix(kind.Kind, "List") {
			continue
		}
		for range 50 {
			o, err := scheme.New(kind)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := o.(metav1.Object); !ok {
				continue // options
			}
			filler.Fill(o)
			o.GetObjectKind().SetGroupVersionKind(kind)
			sameAsClientGo(t, scheme, streamOf(t, watch.Added, o))
		}
	}
}

func TestStreams(t *testing.T) {
	scheme := clients(t).scheme
	const head = `{"apiVersion": "bindy.firestoned.io/v1beta1", "kind": "ARecord", `
	long := head + `"metadata": {"name": "` + strings.Repeat("long", 2000) + `"}}`
	for name, stream := range map[string]string{
		"bookmark":             streamOf(t, watch.Bookmark, head+`"metadata": {"resourceVersion": "7"}}`),
		"failure":              streamOf(t, watch.Error, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Message: "too old", Code: 410}),
		"kind first":           streamOf(t, watch.Added, `{"kind": "ARecord", "apiVersion": "bindy.firestoned.io/v1beta1", "metadata": {"name": "a"}}`),
		"kind last":            streamOf(t, watch.Added, `{"metadata": {"name": "a"}, "kind": "ARecord", "apiVersion": "bindy.firestoned.io/v1beta1"}`),
		"kind escaped":         streamOf(t, watch.Added, `{"apiVersion": "bindy.firestoned.io\/v1beta1", "kind": "\u0041Record", "metadata": {"name": "a"}}`),
		"over several lines":   strings.ReplaceAll(streamOf(t, watch.Added, long, long), ",", ",\n"),
		"unknown kind":         streamOf(t, watch.Added, `{"apiVersion": "bindy.firestoned.io/v1beta1", "kind": "Unknown"}`),
		"no kind":              streamOf(t, watch.Added, `{}`),
		"other fields first":   streamOf(t, watch.Added, `{"x": "ARecord", "y": "bindy.firestoned.io/v1beta1"}`),
		"no object":            streamOf(t, watch.Added, `7`),
		"a name twice":         streamOf(t, watch.Added, head+`"spec": {"name": "a", "name": "b"}}`),
		"no UTF-8":             streamOf(t, watch.Added, head+"\"spec\": {\"name\": \"\xff\"}}"),
		"other case":           streamOf(t, watch.Added, head+`"Spec": {"name": "a"}, "spec": {"Name": "b"}}`),
		"no readable metadata": streamOf(t, watch.Added, head+`"metadata": {"name": 1}}`),
		"nulls":                streamOf(t, watch.Added, head+`"metadata": {"name": "a", "labels": null, "finalizers": null}, "spec": null, "status": {"conditions": null}}`),
		"empty":                streamOf(t, watch.Added, head+`"metadata": {"name": "a", "labels": {}, "finalizers": []}, "spec": {}, "status": {"conditions": []}}`),
		"cut in an event":      streamOf(t, watch.Added, long) + `{"type": "ADDED", "obj`,
		"no JSON":              "<html>",
		"an event of another":  `{"type": 1}`,
		"nothing":              "",
	} {
		t.Run(name, func(t *testing.T) { sameAsClientGo(t, scheme, stream) })
	}
}

// TestUnreadableField keeps what can be read of an object, and its fault.
func TestUnreadableField(t *testing.T) {
	stream := streamOf(t, watch.Added, `{"apiVersion": "bindy.firestoned.io/v1beta1", "kind": "ARecord", "metadata": {"name": "a"}, "spec": {"name": "www", "ttl": "soon"}}`)
	sameAsClientGo(t, clients(t).scheme, stream)
	_, object, err := decoderOf(t, newCodecs(clients(t).scheme), strings.NewReader(stream)).Decode()
	if err != nil {
		t.Fatal(err)
	}
	if a := object.(*v1beta1.ARecord); a.Spec.Name != "www" || !strings.HasPrefix(lenient.SpecProblem(a), "spec.ttl cannot be read") {
		t.Errorf("name %q, problem %q", a.Spec.Name, lenient.SpecProblem(a))
	}
}

// TestEndOfStream returns the errors that client-go compares: those of the connection, and the end within an event.
func TestEndOfStream(t *testing.T) {
	scheme := clients(t).scheme
	if err := sameAsClientGo(t, scheme, ""); err != io.EOF { //nolint:errorlint // as client-go compares it
		t.Errorf("at the end: %v", err)
	}
	if err := sameAsClientGo(t, scheme, `{"type": "ADDED"`); err != io.ErrUnexpectedEOF { //nolint:errorlint // as client-go compares it
		t.Errorf("cut: %v", err)
	}
	reset := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	for _, begin := range []string{"", `{"type": "ADDED"`} {
		frames := frames{}.NewFrameReader(io.NopCloser(io.MultiReader(strings.NewReader(begin), iotest.ErrReader(reset))))
		if _, err := frames.Read(make([]byte, 100)); err != error(reset) { //nolint:errorlint // it must be itself
			t.Errorf("reset after %q: %v", begin, err)
		}
	}
	if err := sameAsClientGo(t, scheme, "<"); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("no JSON: %v", err)
	}
}

// TestResources compares the resources that are listed with those that exist.
func TestResources(t *testing.T) {
	c := clients(t)
	for kind := range c.scheme.AllKnownTypes() {
		o, err := c.scheme.New(kind)
		if _, isObject := o.(metav1.Object); err != nil || !isObject {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		if _, ok := c.Of(o); !ok {
			t.Errorf("%s is not read", kind)
		}
		data, err := os.ReadFile("../../../manifests/crds/" + resource.Group + "_" + resource.Resource + ".yaml")
		if err != nil || !strings.Contains(string(data), "\n    plural: "+resource.Resource+"\n") {
			t.Errorf("%s: no resource %s: %v", kind, resource, err)
		}
	}
	for _, other := range []runtime.Object{&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ARecord"}}, &metav1.Status{}} {
		if _, ok := c.Of(other); ok {
			t.Errorf("%T is read", other)
		}
	}
}

// BenchmarkEvent decodes the event of a record with its status.
func BenchmarkEvent(b *testing.B) {
	at := metav1.NewTime(time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC))
	record := &v1beta1.ARecord{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ARecord"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "bench", Name: "host-7", UID: "7d6a9c9e-0000-4000-8000-000000000007", ResourceVersion: "7", Generation: 1, CreationTimestamp: at,
			Labels: map[string]string{"zone": "bench"}, Annotations: map[string]string{v1beta1.ZoneAnnotation: "bench.example"}, Finalizers: []string{v1beta1.Finalizer},
		},
		Spec: v1beta1.ARecordSpec{RecordCommon: v1beta1.RecordCommon{Name: "host-7"}, IPv4Addresses: []string{"192.0.2.7"}},
	}
	for _, condition := range []string{"Ready", "Accepted", "Programmed"} {
		record.Status.Conditions = append(record.Status.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionTrue, Reason: "ReconcileSucceeded", ObservedGeneration: 1, LastTransitionTime: at,
		})
	}
	record.Status.ZoneRef = &v1beta1.ZoneReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "DNSZone", Namespace: "bench", Name: "bench", ZoneName: "bench.example", LastReconciledAt: &at}
	scheme := clients(b).scheme
	stream := strings.Repeat(streamOf(b, watch.Modified, record), 1000)
	for name, codecs := range map[string]runtime.NegotiatedSerializer{"ours": newCodecs(scheme), "client-go": serializer.NewCodecFactory(scheme).WithoutConversion()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; b.Loop(); n += 1000 {
				events := decoderOf(b, codecs, strings.NewReader(stream))
				for range 1000 {
					if _, _, err := events.Decode(); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/event")
		})
	}
}

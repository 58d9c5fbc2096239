package listing

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// fill sets every field, or some of them at random, to values of every kind.
func fill(v reflect.Value, all bool, random *rand.Rand) {
	if !all && random.IntN(3) == 0 {
		return
	}
	texts := []string{"www.example.test.", `a "quote" and a \`, "<&>", "Zoë\u2028\x01\xff", ""}
	switch v.Interface().(type) {
	case metav1.FieldsV1:
		v.Set(reflect.ValueOf(*metav1.NewFieldsV1(`{"f:spec":{}}`)))
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(random.Int64N(4e9), random.Int64N(1e9)).In(time.FixedZone("", 3600))))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts[random.IntN(len(texts)-1)])
		if !all {
			v.SetString(texts[random.IntN(len(texts))])
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(1 + random.Int64N(1e9))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), all, random)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), all, random)
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"b": "1", "a<": texts[random.IntN(len(texts))], "c": ""}))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), all, random)
		}
	default:
		panic(v.Type())
	}
}

// TestEveryField: the text of a SyncStatus is that of encoding/json, whatever fields it has.
func TestEveryField(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		var s syncv1.SyncStatus
		fill(reflect.ValueOf(&s).Elem(), i == 0, random)
		if i%2 == 1 { // without what has all of the metadata encoded otherwise
			s.ObjectMeta = metav1.ObjectMeta{
				Name: s.Name, Namespace: s.Namespace, UID: s.UID, ResourceVersion: s.ResourceVersion, Generation: s.Generation,
				CreationTimestamp: s.CreationTimestamp, Labels: s.Labels, OwnerReferences: s.OwnerReferences,
			}
			for n := range s.OwnerReferences {
				if i%4 == 1 {
					s.OwnerReferences[n].Controller, s.OwnerReferences[n].BlockOwnerDeletion = nil, nil
				}
			}
		}
		var got text
		got.addStatus(&s)
		want, err := json.Marshal(&s)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.raw, want) {
			t.Fatalf("%d:\n%s\nwant\n%s", i, got.raw, want)
		}
	}
}

// TestEveryFormat: a list is encoded as it is without this package, in every format.
func TestEveryFormat(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := syncv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	codecs := serializer.NewCodecFactory(scheme)
	random := rand.New(rand.NewPCG(3, 4))
	long := make([]syncv1.SyncStatus, 1000)
	for i := range long {
		fill(reflect.ValueOf(&long[i]).Elem(), false, random)
	}
	for length, items := range map[string][]syncv1.SyncStatus{"nil": nil, "empty": {}, "one": long[:1], "long": long} {
		list := &syncv1.SyncStatusList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "<next>", RemainingItemCount: new(int64(3))}, Items: items}
		for _, media := range codecs.SupportedMediaTypes() {
			for _, s := range []runtime.Serializer{media.Serializer, media.PrettySerializer} {
				if s == nil {
					continue
				}
				encoder := codecs.EncoderForVersion(s, syncv1.SchemeGroupVersion)
				var got, want bytes.Buffer
				wantErr, gotErr := encoder.Encode(list, &want), encoder.Encode(&List{list}, &got)
				if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) { // There is no protobuf of it.
					t.Errorf("%s, %s: error %v, want %v", length, encoder.Identifier(), gotErr, wantErr)
				}
				if !bytes.Equal(got.Bytes(), want.Bytes()) {
					t.Errorf("%s, %s:\n%.2000s\nwant\n%.2000s", length, encoder.Identifier(), got.Bytes(), want.Bytes())
				}
			}
		}
		if list.Kind != "" {
			t.Errorf("the list was changed: kind %s", list.Kind)
		}
	}
}

// TestPieces: a list is written in pieces of which the first and second are as k8s.io/apiserver needs them to compress it.
func TestPieces(t *testing.T) {
	list := &syncv1.SyncStatusList{Items: make([]syncv1.SyncStatus, 5000)}
	var sizes []int
	err := (&List{list}).CacheEncode("", func(o runtime.Object, w io.Writer) error { return json.NewEncoder(w).Encode(o) }, writer(func(raw []byte) error {
		sizes = append(sizes, len(raw))
		return nil
	}))
	if err != nil || len(sizes) < 3 || sizes[0] != 1 || sizes[1] < 128<<10 {
		t.Errorf("sizes %v, error %v", sizes, err)
	}
	broken := io.ErrClosedPipe
	for at := range sizes {
		n := 0
		err := (&List{list}).CacheEncode("", func(o runtime.Object, w io.Writer) error { return json.NewEncoder(w).Encode(o) }, writer(func([]byte) error {
			if n++; n > at {
				return broken
			}
			return nil
		}))
		if err != broken { //nolint:errorlint // as it is
			t.Errorf("write %d fails: error %v", at, err)
		}
	}
}

type writer func([]byte) error

func (w writer) Write(raw []byte) (int, error) { return len(raw), w(raw) }

// plain returns a SyncStatus as most are: in sync, and without letters that need an escape.
func plain(s syncv1.SyncStatus) syncv1.SyncStatus {
	s.ObjectMeta = metav1.ObjectMeta{Name: "arecord.www", Namespace: "dns", UID: "9d70", Labels: map[string]string{"zone": "a"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "bindy.firestoned.io/v1beta1", Kind: "ARecord", Name: "www", UID: "8c6f"}}}
	s.ObjectRef = syncv1.ObjectReference{APIVersion: "bindy.firestoned.io/v1beta1", Kind: "ARecord", Namespace: "dns", Name: "www", UID: "8c6f"}
	s.Zone, s.NameServers, s.Paths, s.RRsets = "example.test", nil, nil, []syncv1.RRset{{Name: "www.example.test.", Type: "A", Rdata: []string{"192.0.2.1"}}}
	s.Status.FailureReason, s.Status.FailureMessage = "", ""
	for i := range s.Status.Conditions {
		c := &s.Status.Conditions[i]
		c.Type, c.Status, c.Reason, c.Message = "Ready", "True", "Propagated", "all servers have it"
	}
	for i := range s.Servers {
		r := &s.Servers[i]
		*r = syncv1.ServerStatus{
			Instance: "primary", Namespace: "dns", Pod: "primary-0", Address: "192.0.2.53:53", Role: "Primary", PodPhase: "Running", PodReady: true,
			State: syncv1.StateInSync, Serial: r.Serial, Authoritative: true, Rcode: "NOERROR", RTT: r.RTT, ObservedAt: r.ObservedAt,
		}
	}
	return s
}

// BenchmarkEncode compares this package with both libraries.
func BenchmarkEncode(b *testing.B) {
	list := &syncv1.SyncStatusList{}
	random := rand.New(rand.NewPCG(5, 6))
	var s syncv1.SyncStatus
	fill(reflect.ValueOf(&s).Elem(), true, random)
	s = plain(s)
	for i := range 1000 {
		s.Name = fmt.Sprintf("arecord.r%d", i)
		list.Items = append(list.Items, s)
	}
	encode := func(o runtime.Object, w io.Writer) error { return json.NewEncoder(w).Encode(o) }
	b.Run("here", func(b *testing.B) {
		for b.Loop() {
			_ = (&List{list}).CacheEncode("", encode, io.Discard)
		}
	})
	b.Run("here, compressed", func(b *testing.B) { // -cpu 1,2 shows that both are done at once
		for b.Loop() {
			compressed, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
			_ = (&List{list}).CacheEncode("", encode, compressed)
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		for b.Loop() {
			_ = encode(list, io.Discard)
		}
	})
	b.Run("json/v2", func(b *testing.B) {
		for b.Loop() {
			_ = jsonv2.MarshalWrite(io.Discard, list, jsonv1.DefaultOptionsV1())
		}
	})
}

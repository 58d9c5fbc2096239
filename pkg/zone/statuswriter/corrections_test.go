package statuswriter

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// recordSpecs has a specification for each kind of record.
var recordSpecs = map[string]string{
	"ARecord":     `{"name": "a", "ipv4Addresses": ["192.0.2.1"]}`,
	"AAAARecord":  `{"name": "aaaa", "ipv6Addresses": ["2001:db8::1"]}`,
	"CNAMERecord": `{"name": "cname", "target": "a.example.org."}`,
	"MXRecord":    `{"name": "mx", "priority": 10, "mailServer": "a.example.org."}`,
	"TXTRecord":   `{"name": "txt", "text": ["hello"]}`,
	"NSRecord":    `{"name": "ns", "nameserver": "a.example.org."}`,
	"SRVRecord":   `{"name": "_dns._tcp", "priority": 1, "weight": 1, "port": 53, "target": "a.example.org."}`,
	"PTRRecord":   `{"name": "10", "target": "a.example.org."}`,
	"DNSRecord":   `{"name": "https", "type": "HTTPS", "data": ["1 ."]}`,
	"CAARecord":   `{"name": "caa", "flags": 0, "tag": "issue", "value": "ca.example.org"}`,
}

// overwriting is a writer of the statuses of objects that are in a fake of kube-apiserver.
type overwriting struct {
	*testing.T
	*Writer
	kube client.Client
}

// startWriter starts a writer of the statuses of objects, which a zone takes but the ones called "left".
func startWriter(t *testing.T, zone *v1beta1.DNSZone, objects ...client.Object) overwriting {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	all := append([]client.Object{zone}, objects...)
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).WithStatusSubresource(all...).Build()
	w := NewWriter(Options{Client: kube, Place: func(o source.Object) Placement {
		if o.GetName() == "left" {
			return Placement{}
		}
		return Placement{Taken: []types.NamespacedName{client.ObjectKeyFromObject(zone)}, Held: []types.NamespacedName{client.ObjectKeyFromObject(zone)}}
	}})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Start(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return overwriting{t, w, kube}
}

// read returns an object as it is now.
func (o overwriting) read(like client.Object) client.Object {
	o.Helper()
	now := reflect.New(reflect.TypeOf(like).Elem()).Interface().(client.Object)
	if err := o.kube.Get(o.Context(), client.ObjectKeyFromObject(like), now); err != nil {
		o.Fatal(err)
	}
	return now
}

// statusOf returns an object's status in its JSON form, without times.
func (o overwriting) statusOf(object client.Object) map[string]any {
	o.Helper()
	text, err := json.Marshal(object)
	var all map[string]any
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		o.Fatal(err)
	}
	s, _ := all["status"].(map[string]any)
	return s
}

// waitStatus waits until a status is as it should be.
func (o overwriting) waitStatus(object client.Object, holds func(map[string]any) string) {
	o.Helper()
	var problem string
	if err := wait.PollUntilContextTimeout(o.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		problem = holds(o.statusOf(o.read(object)))
		return problem == "", nil
	}); err != nil {
		o.Fatalf("%T %s: %s", object, object.GetName(), problem)
	}
}

// TestOverwrittenStatusIsWrittenAgain: a status that somebody else has overwritten is put right, for every kind, and our own writes are no
// reason to write again.
func TestOverwrittenStatusIsWrittenAgain(t *testing.T) {
	zone := zoneNamed("example")
	left := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "left", UID: "left", Generation: 1}}
	endpoint := endpointsIn(1, "app.example.com")
	objects, sources := []client.Object{left, endpoint}, []source.Object{endpoint}
	for _, kind := range v1beta1.RecordKinds {
		r := kind.New().(client.Object)
		if err := json.Unmarshal([]byte(`{"metadata": {"namespace": "team", "name": "www", "generation": 1}, "spec": `+recordSpecs[kind.Kind]+`}`), r); err != nil {
			t.Fatal(err)
		}
		r.SetUID(types.UID(kind.Kind))
		objects, sources = append(objects, r), append(sources, r.(source.Object))
	}
	desired, err := source.Build(zone, sources, source.Options{Owns: func(metav1.Object, string) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	o := startWriter(t, zone, objects...)
	o.OnSyncCompleted(SyncCompleted{Zone: zone, Desired: desired, Programmed: status.True(status.ReconcileSucceeded, ""), Serial: 7, At: time.Now()})
	o.Release(types.NamespacedName{}, left)
	withoutTimes := cmpopts.IgnoreMapEntries(func(name string, _ any) bool {
		return name == "lastTransitionTime" || name == "lastUpdated" || name == "lastReconciledAt" || name == "lastSyncTime"
	})
	for _, object := range append(objects, zone) {
		o.waitStatus(object, func(s map[string]any) string {
			if s["conditions"] == nil {
				return "there is no status"
			}
			return ""
		})
	}
	for _, object := range append(objects, zone) {
		for name, overwrite := range map[string]string{
			"emptied": `{"status": {"conditions": []}}`,
			"another operator's": `{"status": {"observedGeneration": 99, "conditions": [
				{"type": "Ready", "status": "False", "reason": "Other", "message": "another operator's", "lastTransitionTime": "2026-11-01T00:00:00Z"}]}}`,
		} {
			before := o.read(object)
			truth := o.statusOf(before)
			if err := o.kube.Status().Patch(t.Context(), o.read(object), client.RawPatch(types.MergePatchType, []byte(overwrite))); err != nil {
				t.Fatal(err)
			}
			o.CorrectStatus(before, o.read(object))
			o.waitStatus(object, func(s map[string]any) string {
				return cmp.Diff(truth, s, withoutTimes)
			})
			if t.Failed() {
				t.Fatalf("%s: %s", object.GetName(), name)
			}
		}
	}
}

// TestCorrectionReplacesNoTask: what an object waits for is not forgotten because somebody has overwritten its status.
func TestCorrectionReplacesNoTask(t *testing.T) {
	before := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "www", UID: "u", ResourceVersion: "1"}}
	after := before.DeepCopy()
	after.ResourceVersion, after.Status.Zone = "2", "invented"
	w := NewWriter(Options{Client: shelve(after), Place: func(source.Object) Placement { return Placement{} }})
	w.Release(zoneKey("a"), before)
	w.CorrectStatus(before, after)
	if got := w.queue.tasks[source.KeyOf(after)]; !got.isRelease() {
		t.Errorf("the task is %+v", got)
	}
	other := after.DeepCopy()
	other.Name = "other"
	w.CorrectStatus(other, other)
	if len(w.queue.tasks) != 1 {
		t.Errorf("tasks without a change: %v", w.queue.tasks)
	}
}

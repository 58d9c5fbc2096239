package review

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// lagging is what caches hold that lag behind what is stored.
type lagging struct {
	*staticObjects
	liveReader
}

// What is missing in the caches and stored all the same is not warned about, and is judged by what is stored.
func TestReviewLooksAtWhatIsStored(t *testing.T) {
	const newZone = `zoneName: new.test, recordsFrom: [{selector: {matchLabels: {zone: new}}}]`
	newer := func(kind, spec string) string {
		return strings.Replace(record(kind, "a", spec), "zone: example", "zone: new", 1)
	}
	tests := map[string]struct {
		object string
		stored []client.Object
		kinds  string // the resources that are asked for
		warns  string // the warning of the caches alone; none when it is empty
		want   string // the refusal; none when it is empty
	}{
		"zone of a record": {
			object: newer("ARecord", `{name: a, ipv4Addresses: [192.0.2.1]}`), stored: []client.Object{zoneOf(t, zone("new", newZone))},
			kinds: "dnszones", warns: "no DNSZone in namespace dns selects this ARecord",
		},
		"zone of a bad record": {
			object: newer("CNAMERecord", `{name: "@", target: a}`), stored: []client.Object{zoneOf(t, zone("new", newZone))},
			kinds: "dnszones new", warns: "no DNSZone in namespace dns selects this CNAMERecord", want: "publish addresses there",
		},
		"zone of an endpoint": {
			object: endpoint(`{dnsName: a.new.test, recordType: A, targets: [192.0.2.1]}, {dnsName: b.new.test, recordType: A, targets: [192.0.2.1]}`), stored: []client.Object{zoneOf(t, zone("new", newZone))},
			kinds: "dnszones", warns: "no DNSZone takes",
		},
		"cluster of a zone": {
			object: zone("new", `zoneName: new.test, clusterRef: new`), stored: []client.Object{&v1beta1.Bind9Cluster{ObjectMeta: metaOf("dns", "new")}},
			kinds: "new", warns: "spec.clusterRef: there is no Bind9Cluster new",
		},
		"global cluster of a zone": {
			object: zone("new", `zoneName: new.test, clusterProviderRef: new`), stored: []client.Object{&v1beta1.ClusterBind9Provider{ObjectMeta: metaOf("", "new")}},
			kinds: "new new", warns: "spec.clusterProviderRef: there is no Bind9GlobalCluster or ClusterBind9Provider new",
		},
		"instance of a zone": {
			object: zone("new", `zoneName: new.test, bind9InstancesFrom: [{selector: {matchLabels: {new: one}}}]`),
			stored: []client.Object{&v1beta1.Bind9Instance{ObjectMeta: labeled("dns", "new", "new", "one")}},
			kinds:  "bind9instances", warns: "spec.bind9InstancesFrom[0].selector: selects no Bind9Instance",
		},
		"cluster of an instance": {
			object: `{kind: Bind9Instance, metadata: {name: i, namespace: dns}, spec: {clusterRef: new, role: primary}}`, stored: []client.Object{&v1beta1.Bind9Cluster{ObjectMeta: metaOf("dns", "new")}},
			kinds: "new", warns: "spec.clusterRef: there is no Bind9Cluster new",
		},
		"records of a zone": {
			object: zone("new", newZone+", bind9InstancesFrom: [{selector: {matchExpressions: [{key: x, operator: DoesNotExist}]}}]"), stored: []client.Object{recordOf(t, `{kind: AAAARecord, metadata: {name: a, namespace: dns, labels: {zone: new}}, spec: {name: a}}`)},
			kinds: "arecords aaaarecords", warns: "spec.recordsFrom[0].selector: selects none of the records",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			req := request(t, tc.object, "")
			answer := NewHandler(example(t)).Handle(quick(t), req)
			if !answer.Allowed || !strings.Contains(strings.Join(answer.Warnings, "\n"), tc.warns) {
				t.Fatalf("by the caches alone: allowed = %v, warnings = %q", answer.Allowed, answer.Warnings)
			}
			var asked []string
			now := storedIn(t, func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, path.Base(r.URL.Path))
				answers(tc.stored).ServeHTTP(w, r)
			})
			reviewer := NewHandler(lagging{example(t), now})
			reviewer.timeout = time.Minute
			answer = reviewer.Handle(t.Context(), req)
			switch {
			case tc.want == "" && (!answer.Allowed || len(answer.Warnings) > 0):
				t.Errorf("allowed = %v, warnings = %q", answer.Allowed, answer.Warnings)
			case tc.want != "" && (answer.Allowed || !strings.Contains(answer.Result.Message, tc.want)):
				t.Errorf("allowed = %v, want it refused with %q", answer.Allowed, tc.want)
			}
			if got := strings.Join(asked, " "); got != tc.kinds {
				t.Errorf("asked for %q, want %q", got, tc.kinds)
			}
		})
	}
}

// However long the API server takes, a review ends in time, with what the caches say.
func TestReviewEndsInTime(t *testing.T) {
	o := filled(t, map[string][]client.Object{
		"dnszones": {zoneOf(t, zone("example-com", "zoneName: example.com, recordsFrom: [{selector: {matchLabels: {zone: example}}}]"))},
		"arecords": {recordOf(t, www)},
	})
	o.liveClient = storedIn(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	reviewer := NewHandler(o)
	reviewer.timeout = time.Millisecond
	for object, want := range map[string]string{
		`{kind: ARecord, metadata: {name: a, namespace: dns}, spec: {name: a, ipv4Addresses: [192.0.2.1]}}`: "no DNSZone in namespace dns selects this ARecord",
		zone("new", `zoneName: new.test, clusterRef: nowhere`):                                              "spec.clusterRef: there is no Bind9Cluster nowhere",
	} {
		o.retryAt.Store(0)
		answer := reviewer.Handle(t.Context(), request(t, object, ""))
		if !answer.Allowed || !strings.Contains(strings.Join(answer.Warnings, "\n"), want) {
			t.Errorf("allowed = %v, warnings = %q, want %q", answer.Allowed, answer.Warnings, want)
		}
		if o.retryAt.Load() == 0 {
			t.Error("asked, and to be asked again at once")
		}
	}
}

// Without an answer the word of the caches stands, and the API server is left alone for a while.
func TestStoredLeavesAServerInTroubleAlone(t *testing.T) {
	var asked atomic.Int32
	s := storedIn(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusForbidden)
	})
	s.retryAfter = time.Hour
	for range 3 {
		if s.hasLiveCluster(t.Context(), "dns", "c") || len(s.liveZones(t.Context(), "dns")) > 0 {
			t.Error("found")
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
	s.retryAt.Add(int64(24 * time.Hour)) // The clock is set back.
	if _ = s.liveZones(t.Context(), "dns"); asked.Load() != 2 {
		t.Error("left alone for a day")
	}
}

// A user who went away says nothing of the API server.
func TestStoredGoesOnAfterACancelledRequest(t *testing.T) {
	s := storedIn(t, answers([]client.Object{&v1beta1.Bind9Cluster{ObjectMeta: metaOf("dns", "c")}}).ServeHTTP)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if s.hasLiveCluster(gone, "dns", "c") || !s.hasLiveCluster(t.Context(), "dns", "c") {
		t.Error("found for nobody, or not found afterwards")
	}
}

func TestStoredReadsSoManyTimes(t *testing.T) {
	var asked atomic.Int32
	s := storedIn(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answers(nil).ServeHTTP(w, r)
	})
	s.budget = never{}
	if s.hasLiveCluster(t.Context(), "dns", "c") || s.hasLiveRecords(t.Context(), "dns", nil) || asked.Load() > 0 || s.retryAt.Load() > 0 {
		t.Errorf("asked %d times without a budget, again not before %d", asked.Load(), s.retryAt.Load())
	}
}

// never is a budget of nothing.
type never struct{}

func (never) TryAccept() bool { return false }
func (never) Stop()           {}
func (never) QPS() float32    { return 0 }

// More zones than a page are not looked at: the rest could say otherwise.
func TestStoredLooksAtOnePage(t *testing.T) {
	s := storedIn(t, func(w http.ResponseWriter, r *http.Request) {
		if limit := r.URL.Query().Get("limit"); limit != "500" {
			t.Errorf("limit %q", limit)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion": "bindy.firestoned.io/v1beta1", "kind": "DNSZoneList", "metadata": {"continue": "more"}, "items": [{"metadata": {"name": "z"}}]}`))
	})
	if zones := s.liveZones(t.Context(), "dns"); zones != nil {
		t.Errorf("%d zones", len(zones))
	}
}

// Whoever sends reviews by the thousands uses up the live reads for its own, and not those for others.
func TestLiveReadsOfASender(t *testing.T) {
	s := newLiveClient(nil)
	reads := 0
	for forger := WithSender(t.Context(), "192.0.2.66"); s.accept(forger) && reads < 1000*readsAtOnce; {
		reads++
	}
	if !s.accept(WithSender(t.Context(), "192.0.2.1")) {
		t.Errorf("after %d reads for one sender there is none for another", reads)
	}
}

// storedIn reads from an API server.
func storedIn(t *testing.T, handler http.HandlerFunc) *liveClient {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	reader, err := client.New(&rest.Config{Host: server.URL}, client.Options{Scheme: scheme, Mapper: mapper()})
	if err != nil {
		t.Fatal(err)
	}
	return newLiveClient(reader)
}

// answers serves objects of namespaced and other kinds: by name, and in lists by label.
func answers(stored []client.Object) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if gvk, err := mapper().KindFor(schema.GroupVersionResource{Resource: path.Base(r.URL.Path)}); err == nil {
			selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			matching := slices.DeleteFunc(slices.Clone(stored), func(o client.Object) bool {
				return kindOf(o) != gvk.Kind || !selector.Matches(labels.Set(o.GetLabels()))
			})
			listing(map[string][]client.Object{path.Base(r.URL.Path): matching}).ServeHTTP(w, r)
			return
		}
		gvk, err := mapper().KindFor(schema.GroupVersionResource{Resource: path.Base(path.Dir(r.URL.Path))})
		for _, o := range stored {
			if err == nil && kindOf(o) == gvk.Kind && o.GetName() == path.Base(r.URL.Path) {
				_ = json.NewEncoder(w).Encode(o)
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
	}
}

func kindOf(o client.Object) string { return reflect.TypeOf(o).Elem().Name() }

func metaOf(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func labeled(namespace, name, key, value string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{key: value}}
}

// A refusal rests on what is stored, not on what a cache holds of objects that are gone or changed by now.
func TestRefusalsLookAtWhatIsStored(t *testing.T) {
	sub := func(change func(o v1beta1.Record)) client.Object {
		o := recordOf(t, `{kind: NSRecord, metadata: {name: only, namespace: dns, uid: r9, labels: {zone: example}, creationTimestamp: "2026-01-02T00:00:00Z"}, spec: {name: only, nameserver: ns1.test.}}`)
		if change != nil {
			change(o)
		}
		return o
	}
	older := zoneOf(t, strings.Replace(zone("older", "zoneName: new.test, clusterRef: c, recordsFrom: [{selector: {matchLabels: {name: cart}}}]"), "namespace: dns", "namespace: dns, uid: z9, creationTimestamp: '2026-01-01T00:00:00Z'", 1))
	cart := recordOf(t, `{kind: ARecord, metadata: {name: cart, namespace: dns, uid: r8, labels: {name: cart}}, spec: {name: cart, ipv4Addresses: [192.0.2.1]}}`)
	below := record("ARecord", "a", `{name: host.only, ipv4Addresses: [192.0.2.7]}`)
	for name, tc := range map[string]struct {
		object string
		stored []client.Object
		budget flowcontrol.PassiveRateLimiter
		want   string
	}{
		"delegation above it":                     {object: below, stored: []client.Object{sub(nil)}, want: "is delegated to"},
		"a delegation, and nobody to ask":         {object: below, budget: never{}, want: "is delegated to"},
		"a delegation that is gone":               {object: below},
		"a delegation that is about to go":        {object: below, stored: []client.Object{sub(func(o v1beta1.Record) { o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)}) })}},
		"a delegation of another name now":        {object: below, stored: []client.Object{sub(func(o v1beta1.Record) { o.SetGeneration(2) })}},
		"a delegation of another zone now":        {object: below, stored: []client.Object{sub(func(o v1beta1.Record) { o.SetLabels(nil) })}},
		"a delegation that is another object now": {object: below, stored: []client.Object{sub(func(o v1beta1.Record) { o.SetUID("new") })}},
		"zone of the name":                        {object: zone("new", "zoneName: new.test, clusterRef: c"), stored: []client.Object{older}, want: "DNSZone dns/older"},
		"a zone of the name that is gone":         {object: zone("new", "zoneName: new.test, clusterRef: c")},
		"zone of its records": {
			object: zone("new", "zoneName: other.test, recordsFrom: [{selector: {matchLabels: {name: cart}}}]"), stored: []client.Object{older, cart}, want: "DNSZone dns/older is older",
		},
		"a zone of its records that is gone": {object: zone("new", "zoneName: other.test, recordsFrom: [{selector: {matchLabels: {name: cart}}}]"), stored: []client.Object{cart}},
	} {
		t.Run(name, func(t *testing.T) {
			held := example(t, sub(nil), older, cart)
			now := storedIn(t, answers(append(tc.stored, held.members.ZonesNamed("example.com.")[0])))
			if tc.budget != nil {
				now.budget = tc.budget
			}
			reviewer := NewHandler(catchingUp{lagging{held, now}, new(bool)})
			reviewer.timeout = time.Minute
			answer := reviewer.Handle(t.Context(), request(t, tc.object, ""))
			switch {
			case tc.want == "" && !answer.Allowed:
				t.Errorf("refused: %v", answer.Result)
			case tc.want != "" && (answer.Allowed || !strings.Contains(answer.Result.Message, tc.want)):
				t.Errorf("allowed = %v, want it refused with %q: %v", answer.Allowed, tc.want, answer.Result)
			}
		})
	}
}

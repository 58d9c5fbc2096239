package cachehealth

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/testutil"

	"github.com/lockstep-dns/lockstep/pkg/component"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

const (
	goodInstance = `{"kind": "Bind9Instance", "apiVersion": "bindy.firestoned.io/v1beta1",
		"metadata": {"name": "good", "namespace": "dns", "resourceVersion": "2"}, "spec": {"role": "primary"}}`
	poisonedInstance = `{"kind": "Bind9Instance", "apiVersion": "bindy.firestoned.io/v1beta1",
		"metadata": {"name": "poisoned", "namespace": "dns", "resourceVersion": "3"}, "spec": {"role": "primary", "clusterRef": "c",
		"storage": {"emptyDir": {"sizeLimit": "1e1.5"}}}, "status": {"replicas": "many", "readyReplicas": 1}}`
)

// kubeServer serves instances: a list, and a watch in which another event follows when it is sent.
func kubeServer(t *testing.T, items string, events <-chan string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_, _ = w.Write([]byte(`{"kind": "Bind9InstanceList", "apiVersion": "bindy.firestoned.io/v1beta1", "metadata": {"resourceVersion": "3"}, "items": [` + items + `]}`))
			return
		}
		if r.URL.Query().Get("sendInitialEvents") != "" { // as a kube-apiserver that cannot stream lists
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}`))
			return
		}
		w.(http.Flusher).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case event := <-events:
				_, _ = w.Write([]byte(event + "\n"))
				w.(http.Flusher).Flush()
			}
		}
	}))
	t.Cleanup(server.CloseClientConnections)
	return server
}

// startInformer starts a cache of instances, as the API server has it.
func startInformer(t *testing.T, m *Monitor, host string) cache.SharedIndexInformer {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	group := v1beta1.GroupVersion
	client, err := rest.RESTClientFor(&rest.Config{Host: host, APIPath: "/apis", ContentConfig: rest.ContentConfig{
		GroupVersion: &group, NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	from := cache.NewListWatchFromClient(client, "bind9instances", "", fields.Everything())
	informer := m.NewInformer(from, &v1beta1.Bind9Instance{}, 0, cache.Indexers{})
	go informer.RunWithContext(t.Context())
	return informer
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// An object that cannot be decoded costs no other object its place in the cache, in a list as in a watch, and is counted.
func TestUnreadableObjectIsOneObject(t *testing.T) {
	began := time.Now()
	events := make(chan string)
	m := NewMonitor()
	counted := func() float64 {
		n, err := testutil.GetCounterMetricValue(unreadable.WithLabelValues("Bind9Instance"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := component.RegisterMetrics(); err != nil {
		t.Fatal(err)
	}
	before := counted()
	informer := startInformer(t, m, kubeServer(t, poisonedInstance+","+goodInstance, events).URL)
	eventually(t, "both are in the cache", func() bool { return len(informer.GetStore().List()) == 2 })
	later := strings.NewReplacer(`"poisoned"`, `"poisoned-later"`, `"resourceVersion": "3"`, `"resourceVersion": "4"`)
	events <- `{"type": "ADDED", "object": ` + strings.ReplaceAll(later.Replace(poisonedInstance), "\n", " ") + `}`
	events <- `{"type": "ADDED", "object": ` + strings.ReplaceAll(strings.Replace(goodInstance, `"good"`, `"good-later"`, 1), "\n", " ") + `}`
	eventually(t, "the watch goes on", func() bool { return len(informer.GetStore().List()) == 4 })
	if n, err := testutil.GetCounterMetricValue(watches.WithLabelValues("Bind9Instance")); n == 0 || err != nil {
		t.Errorf("%v watches are counted (%v)", n, err)
	}
	if at, err := testutil.GetGaugeMetricValue(lastEvent.WithLabelValues("Bind9Instance")); at < float64(began.Unix()) || err != nil {
		t.Errorf("the last event is of %v (%v), before the test", at, err)
	}
	if got := counted() - before; got != 2 {
		t.Errorf("%v unreadable versions counted, want 2", got)
	}
	o, _, _ := informer.GetStore().GetByKey("dns/poisoned")
	if i := o.(*v1beta1.Bind9Instance); i.Spec.ClusterRef != "c" || i.Status.ReadyReplicas != 1 {
		t.Errorf("what can be read is lost: %+v %+v", i.Spec, i.Status)
	}
	if err := m.Check(nil); err != nil {
		t.Errorf("not ready: %v", err)
	}
}

// A cache whose lists fail for a while makes the component not ready, until they succeed again.
func TestFailingListIsNotReady(t *testing.T) {
	target, err := url.Parse(kubeServer(t, goodInstance, nil).URL)
	if err != nil {
		t.Fatal(err)
	}
	var broken atomic.Bool
	broken.Store(true)
	proxy := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() {
			http.Error(w, "broken", http.StatusInternalServerError)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.CloseClientConnections)
	var offset atomic.Int64
	m := NewMonitor()
	m.now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	informer := startInformer(t, m, front.URL)
	failing := func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.failing) > 0
	}
	eventually(t, "a failure is known", failing)
	if err := m.Check(nil); err != nil {
		t.Errorf("not ready after a moment: %v", err)
	}
	offset.Store(int64(tolerance))
	if err := m.Check(nil); err == nil || !strings.Contains(err.Error(), "Bind9Instance since") {
		t.Errorf("ready although the list fails: %v", err)
	}
	broken.Store(false)
	eventually(t, "the cache is full", informer.HasSynced)
	eventually(t, "it is ready again", func() bool { return m.Check(nil) == nil })
}

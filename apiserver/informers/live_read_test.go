package informers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// An object that is deleted and made again while a reader looks is not waited for to be gone.
func TestWaitEndsWhenObjectIsRecreated(t *testing.T) {
	zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "x", ResourceVersion: "7"}}
	reads := 0
	live := func(context.Context, subject.Kind, string, string) (metav1.Object, error) {
		if reads++; reads == 1 {
			return nil, apierrors.NewNotFound(v1beta1.Resource("dnszones"), "x")
		}
		return zone, nil
	}
	inf := NewFrom(func(runtime.Object) cache.ListerWatcher { return &cache.ListWatch{} }, live, "home")
	if err := inf.Indexer("DNSZone").Add(zone); err != nil {
		t.Fatal(err)
	}
	if err := inf.WaitForObject(t.Context(), source.ObjectKey{Kind: "DNSZone", Namespace: "dns", Name: "x"}); err != nil || reads != 2 {
		t.Errorf("after %d reads: %v", reads, err)
	}
}

// While a cache is without its watch it may hold what is no longer so: nobody is answered from it.
func TestNobodyIsAnsweredFromCachesThatDoNotFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		var records *watch.FakeWatcher
		inf := NewFrom(func(example runtime.Object) cache.ListerWatcher {
			return &cache.ListWatch{
				ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					return &v1beta1.ARecordList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, nil
				},
				WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
					if o.SendInitialEvents != nil {
						return nil, apierrors.NewInvalid(v1beta1.GroupVersion.WithKind("x").GroupKind(), "", nil) // lists are not streamed here
					}
					if away.Load() {
						return nil, &url.Error{Op: "Get", URL: "https://kubernetes", Err: syscall.ECONNREFUSED}
					}
					w := watch.NewFake()
					if _, ok := example.(*v1beta1.ARecord); ok {
						records = w
					}
					return w, nil
				},
			}
		}, nil, "home")
		ctx, cancel := context.WithCancel(t.Context())
		go inf.Run(ctx)
		synctest.Wait()
		if err := inf.WaitForCaches(t.Context()); err != nil || !inf.HasSynced() {
			t.Fatalf("at first: %v", err)
		}
		away.Store(true)
		records.Stop()
		synctest.Wait()
		if err := inf.WaitForCaches(t.Context()); !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "ARecord since") {
			t.Errorf("without kube-apiserver: %v", err)
		}
		answered := make(chan error)
		go func() { answered <- inf.WaitForCaches(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-answered:
			t.Errorf("answered at once: %v", err)
		default:
		}
		away.Store(false)
		if err := <-answered; err != nil {
			t.Errorf("when it is back: %v", err)
		}
		cancel()
		synctest.Wait()
	})
}

// What is read past the caches is the object that was asked about, and nothing else.
func TestLiveReadsOneObject(t *testing.T) {
	var asked string
	kube := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "x", "resourceVersion": "7"}}`))
	}))
	defer kube.Close()
	inf, err := New(&rest.Config{Host: kube.URL}, "home")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind                  subject.Kind
		namespace, name, want string
	}{
		{subject.ZoneKind, "dns", "x", "/apis/bindy.firestoned.io/v1beta1/namespaces/dns/dnszones/x"},
		{subject.EndpointKind, "dns", "x.y", "/apis/externaldns.k8s.io/v1alpha1/namespaces/dns/dnsendpoints/x.y"},
		{subject.GlobalClusterKind, "dns", "x", "/apis/bindy.firestoned.io/v1beta1/bind9globalclusters/x"},
		{subject.ProviderKind, "dns", "x", "/apis/bindy.firestoned.io/v1beta1/clusterbind9providers/x"},
		{subject.ZoneKind, "dns", "..", ""},
		{subject.ZoneKind, "dns", "x/status", ""},
		{subject.ZoneKind, "dns", "", ""},
		{subject.ZoneKind, "..", "x", ""},
	} {
		asked = ""
		o, err := inf.live(t.Context(), c.kind, c.namespace, c.name)
		switch {
		case asked != c.want:
			t.Errorf("%s %q/%q: asked for %q, want %q", c.kind.Kind, c.namespace, c.name, asked, c.want)
		case c.want == "" && !apierrors.IsNotFound(err):
			t.Errorf("%s %q: %v, want not found", c.kind.Kind, c.name, err)
		case c.want != "" && (err != nil || o.GetResourceVersion() != "7"):
			t.Errorf("%s %q: %v, %v", c.kind.Kind, c.name, o, err)
		}
	}
}

// What every record of a zone has is in memory once.
func TestCachedObjectsShareWhatTheyHaveInCommon(t *testing.T) {
	inf := NewFrom(func(runtime.Object) cache.ListerWatcher { return &cache.ListWatch{} }, nil, "home")
	labels := func(o metav1.Object) uintptr {
		o.SetLabels(map[string]string{"zone": "example"})
		if _, err := inf.transform(o); err != nil {
			t.Fatal(err)
		}
		return reflect.ValueOf(o.GetLabels()).Pointer()
	}
	zone := &v1beta1.DNSZone{}
	zone.Status.Records = []v1beta1.RecordReference{{Name: "www"}}
	if labels(zone) != labels(&v1beta1.ARecord{}) {
		t.Error("each object has labels of its own")
	}
	if len(zone.Status.Records) > 0 {
		t.Error("the zone has its records")
	}
}

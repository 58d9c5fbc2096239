package review

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// filled are the webhook's own caches with its own indexes, filled over HTTP with the objects, by resource: what
// kube-apiserver would list. More objects can be looked at than a test could create.
func filled(t testing.TB, objects map[string][]client.Object) *CachedObjects {
	t.Helper()
	server := httptest.NewServer(listing(objects))
	t.Cleanup(func() {
		server.CloseClientConnections() // Watches never end by themselves.
		server.Close()
	})
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := cache.New(&rest.Config{Host: server.URL}, cache.Options{Scheme: scheme, Mapper: mapper(), DefaultTransform: StripForCache})
	if err != nil {
		t.Fatal(err)
	}
	direct, err := client.New(&rest.Config{Host: server.URL}, client.Options{Scheme: scheme, Mapper: mapper()})
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewCachedObjects(c, direct, "lockstep-system")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := c.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if !c.WaitForCacheSync(t.Context()) || !toolscache.WaitForCacheSync(t.Context().Done(), o.HasSynced) {
		t.Fatal("the caches do not fill")
	}
	return o
}

// mapper knows the resources of the kinds that are looked at.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range v1beta1.RecordKinds {
		m.Add(kind.GroupVersionKind(), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"DNSZone", "Bind9Instance", "Bind9Cluster", "DNSProvider"} {
		m.Add(v1beta1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Bind9GlobalCluster", "ClusterBind9Provider", "ZoneGrant"} {
		m.Add(v1beta1.GroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	m.Add(v1alpha1.GroupVersion.WithKind("DNSEndpoint"), meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	return m
}

// listing answers lists, and watches in which nothing happens.
func listing(objects map[string][]client.Object) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		switch {
		case query.Has("sendInitialEvents"): // Not this way: list, then watch.
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(metav1.Status{Status: "Failure", Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
		case query.Has("watch"):
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			items := objects[path.Base(r.URL.Path)]
			if items == nil {
				items = []client.Object{}
			}
			kind, _ := mapper().KindFor(schema.GroupVersionResource{Resource: path.Base(r.URL.Path)})
			if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
				kind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
			}
			_ = json.NewEncoder(w).Encode(map[string]any{
				"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind + "List",
				"metadata": map[string]string{"resourceVersion": "1"}, "items": items,
			})
		}
	})
}

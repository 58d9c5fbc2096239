package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// byZoneName indexes zones by their DNS name.
const byZoneName = "zoneName"

// podSelector picks the pods that run BIND.
const podSelector = "app.kubernetes.io/name=bind9"

// Informers cache every object that a SyncStatus can follow from.
type Informers struct {
	zones, instances, clusters, pods cache.SharedIndexInformer
	// records holds one informer for each record kind, by Kubernetes kind.
	records map[string]cache.SharedIndexInformer
	// live reads one object past the caches.
	live func(ctx context.Context, kind syncstatus.Kind, namespace, name string) (metav1.Object, error)
}

// NewInformers prepares the caches; Run fills them.
func NewInformers(config *rest.Config) (*Informers, error) {
	stored, err := storedClient(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", v1beta1.GroupVersion, err)
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for pods: %w", err)
	}
	inf, err := newInformers(func(resource string) cache.ListerWatcher {
		if resource == "pods" {
			return listWatch(core.CoreV1().RESTClient(), resource, podSelector)
		}
		return listWatch(stored, resource, "")
	})
	if err != nil {
		return nil, err
	}
	inf.live = func(ctx context.Context, kind syncstatus.Kind, namespace, name string) (metav1.Object, error) {
		raw, err := stored.Get().Namespace(namespace).Resource(kind.Resource).Name(name).DoRaw(ctx)
		if err != nil {
			return nil, err
		}
		o := &metav1.PartialObjectMetadata{}
		return o, json.Unmarshal(raw, o)
	}
	return inf, nil
}

// newInformers prepares the caches from wherever each resource comes from.
func newInformers(from func(resource string) cache.ListerWatcher) (*Informers, error) {
	inf := &Informers{records: map[string]cache.SharedIndexInformer{}}
	inf.zones = informer(from("dnszones"), &v1beta1.DNSZone{})
	inf.instances = informer(from("bind9instances"), &v1beta1.Bind9Instance{})
	inf.clusters = informer(from("bind9clusters"), &v1beta1.Bind9Cluster{})
	inf.pods = informer(from("pods"), &corev1.Pod{})
	for _, k := range v1beta1.RecordKinds {
		inf.records[k.Kind] = informer(from(k.Resource), k.New())
	}
	err := inf.zones.AddIndexers(cache.Indexers{byZoneName: func(o any) ([]string, error) {
		return []string{source.DNSName(o.(*v1beta1.DNSZone))}, nil
	}})
	return inf, err
}

func storedClient(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	c := rest.CopyConfig(config)
	c.APIPath, c.GroupVersion = "/apis", &v1beta1.GroupVersion
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	return rest.RESTClientFor(c)
}

func listWatch(c cache.Getter, resource, labels string) cache.ListerWatcher {
	return cache.NewFilteredListWatchFromClient(c, resource, metav1.NamespaceAll, func(o *metav1.ListOptions) { o.LabelSelector = labels })
}

func informer(from cache.ListerWatcher, example runtime.Object) cache.SharedIndexInformer {
	inf := cache.NewSharedIndexInformer(from, example, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	// Only fails on an informer that runs already.
	_ = inf.SetTransform(func(o any) (any, error) {
		if m, err := meta.Accessor(o); err == nil {
			m.SetManagedFields(nil)
		}
		return o, nil
	})
	return inf
}

func (i *Informers) all() []cache.SharedIndexInformer {
	all := []cache.SharedIndexInformer{i.zones, i.instances, i.clusters, i.pods}
	for _, k := range v1beta1.RecordKinds {
		all = append(all, i.records[k.Kind])
	}
	return all
}

// Run fills the caches and keeps them current until the context ends. Kinds that do not exist yet are waited for.
func (i *Informers) Run(ctx context.Context) {
	for _, inf := range i.all() {
		go inf.RunWithContext(ctx)
	}
	<-ctx.Done()
}

// HasSynced tells whether every cache holds what the cluster holds.
func (i *Informers) HasSynced() bool {
	for _, inf := range i.all() {
		if !inf.HasSynced() {
			return false
		}
	}
	return true
}

// Name and Check make the caches a readiness check: ready is who knows what is declared, whatever DNS does.
func (i *Informers) Name() string { return "informers-synced" }

// Check fails while a cache is not filled.
func (i *Informers) Check(*http.Request) error {
	var missing []string
	for kind, inf := range i.byKind() {
		if !inf.HasSynced() {
			missing = append(missing, kind)
		}
	}
	if !i.pods.HasSynced() {
		missing = append(missing, "Pod")
	}
	if len(missing) > 0 {
		return fmt.Errorf("caches not filled yet: %s", strings.Join(missing, ", "))
	}
	return nil
}

// byKind gives the informers of the kinds that have a SyncStatus.
func (i *Informers) byKind() map[string]cache.SharedIndexInformer {
	m := map[string]cache.SharedIndexInformer{
		syncstatus.ZoneKind.Kind: i.zones, syncstatus.InstanceKind.Kind: i.instances, syncstatus.ClusterKind.Kind: i.clusters,
	}
	for kind, inf := range i.records {
		m[kind] = inf
	}
	return m
}

// inNamespace lists one cache's objects in a namespace, or in all with "".
func inNamespace[T any](inf cache.SharedIndexInformer, namespace string) []T {
	items := inf.GetIndexer().List()
	if namespace != "" {
		var err error
		if items, err = inf.GetIndexer().ByIndex(cache.NamespaceIndex, namespace); err != nil {
			return nil
		}
	}
	out := make([]T, 0, len(items))
	for _, o := range items {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

// get finds one object in a cache.
func get[T any](inf cache.SharedIndexInformer, namespace, name string) (T, bool) {
	var none T
	o, exists, err := inf.GetIndexer().GetByKey(namespace + "/" + name)
	if err != nil || !exists {
		return none, false
	}
	t, ok := o.(T)
	return t, ok
}

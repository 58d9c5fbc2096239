package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// byZoneName indexes zones by their DNS name.
const byZoneName = "zoneName"

// podSelector picks the pods that run BIND.
const podSelector = "app.kubernetes.io/name=bind9"

// Informers cache every object that a SyncStatus can follow from.
type Informers struct {
	zones, instances, pods cache.SharedIndexInformer
	// sources holds one informer for each kind that declares DNS data, by Kubernetes kind.
	sources map[string]cache.SharedIndexInformer
	// byKind holds the informers of all kinds that have a SyncStatus.
	byKind map[string]cache.SharedIndexInformer
	// handled tell whether all that was in a cache when it was first filled has been handled.
	handled []cache.InformerSynced
	// live reads the metadata of one object past the caches.
	live func(ctx context.Context, kind syncstatus.Kind, namespace, name string) (metav1.Object, error)
}

// NewInformers prepares the caches; Run fills them.
// home is the namespace of the instances of cluster-scoped clusters that name none.
func NewInformers(config *rest.Config, home string) (*Informers, error) {
	stored, err := storedClient(config, v1beta1.GroupVersion, v1beta1.AddToScheme)
	if err != nil {
		return nil, err
	}
	external, err := storedClient(config, v1alpha1.GroupVersion, v1alpha1.AddToScheme)
	if err != nil {
		return nil, err
	}
	clientOf := func(resource string) rest.Interface {
		if resource == syncstatus.EndpointKind.Resource {
			return external
		}
		return stored
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for pods: %w", err)
	}
	inf, err := newInformers(home, func(resource string) cache.ListerWatcher {
		if resource == "pods" {
			return listWatch(core.CoreV1().RESTClient(), resource, podSelector)
		}
		return listWatch(clientOf(resource), resource, "")
	})
	if err != nil {
		return nil, err
	}
	heads, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for metadata: %w", err)
	}
	inf.live = func(ctx context.Context, kind syncstatus.Kind, namespace, name string) (metav1.Object, error) {
		resource := kind.GroupVersion().WithResource(kind.Resource)
		if name == "" || len(content.IsPathSegmentName(name)) > 0 {
			return nil, apierrors.NewNotFound(resource.GroupResource(), name) // such as "..", which leads elsewhere
		}
		if kind == syncstatus.GlobalClusterKind || kind == syncstatus.ProviderKind {
			namespace = ""
		}
		return heads.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	return inf, nil
}

// newInformers prepares the caches from wherever each resource comes from.
func newInformers(home string, from func(resource string) cache.ListerWatcher) (*Informers, error) {
	inf := &Informers{sources: map[string]cache.SharedIndexInformer{}}
	inf.zones = informer(from("dnszones"), &v1beta1.DNSZone{})
	inf.instances = informer(from("bind9instances"), &v1beta1.Bind9Instance{})
	inf.pods = informer(from("pods"), &corev1.Pod{})
	for _, k := range v1beta1.RecordKinds {
		inf.sources[k.Kind] = informer(from(k.Resource), k.New())
	}
	inf.sources[syncstatus.EndpointKind.Kind] = informer(from(syncstatus.EndpointKind.Resource), &v1alpha1.DNSEndpoint{})
	inf.byKind = maps.Clone(inf.sources)
	inf.byKind[syncstatus.ZoneKind.Kind] = inf.zones
	inf.byKind[syncstatus.InstanceKind.Kind] = inf.instances
	inf.byKind[syncstatus.ClusterKind.Kind] = informer(from(syncstatus.ClusterKind.Resource), &v1beta1.Bind9Cluster{})
	inf.byKind[syncstatus.GlobalClusterKind.Kind] = informer(located(from(syncstatus.GlobalClusterKind.Resource), home), &v1beta1.Bind9GlobalCluster{})
	inf.byKind[syncstatus.ProviderKind.Kind] = informer(located(from(syncstatus.ProviderKind.Resource), home), &v1beta1.ClusterBind9Provider{})
	err := inf.zones.AddIndexers(cache.Indexers{byZoneName: func(o any) ([]string, error) {
		return []string{source.DNSName(o.(*v1beta1.DNSZone))}, nil
	}})
	return inf, err
}

func storedClient(config *rest.Config, group schema.GroupVersion, addTo func(*runtime.Scheme) error) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := addTo(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	c := rest.CopyConfig(config)
	c.APIPath, c.GroupVersion = "/apis", &group
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", group, err)
	}
	return client, nil
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
	return append(slices.Collect(maps.Values(i.byKind)), i.pods)
}

// named are the zones of all namespaces with a DNS name, which is written in lower case and without the final dot.
func (i *Informers) named(zoneName string) []*v1beta1.DNSZone {
	items, err := i.zones.GetIndexer().ByIndex(byZoneName, zoneName)
	if err != nil {
		return nil
	}
	zones := make([]*v1beta1.DNSZone, len(items))
	for n, o := range items {
		zones[n] = o.(*v1beta1.DNSZone)
	}
	return zones
}

// Run fills the caches and keeps them current until the context ends. Kinds that do not exist yet are waited for.
func (i *Informers) Run(ctx context.Context) {
	for _, inf := range i.all() {
		go inf.RunWithContext(ctx)
	}
	<-ctx.Done()
}

// HasSynced tells whether every cache holds what the cluster holds, and everybody who follows them knows.
func (i *Informers) HasSynced() bool {
	for _, inf := range i.all() {
		if !inf.HasSynced() {
			return false
		}
	}
	for _, synced := range i.handled {
		if !synced() {
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
	for kind, inf := range i.byKind {
		if !inf.HasSynced() {
			missing = append(missing, kind)
		}
	}
	if !i.pods.HasSynced() {
		missing = append(missing, "Pod")
	}
	switch {
	case len(missing) > 0:
		return fmt.Errorf("caches not filled yet: %s", strings.Join(missing, ", "))
	case !i.HasSynced():
		return errors.New("caches filled, and not all of their content looked at yet")
	}
	return nil
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

// Package informers caches every object that a SyncStatus can follow from, and reads single objects past the caches for
// callers that must see their own writes. It knows nothing of DNS servers. Package desired and everything above it read
// these caches.
package informers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/kube/cachehealth"
	"github.com/lockstep-dns/lockstep/pkg/kube/intern"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// The cached kinds without a SyncStatus.
const (
	PodKind         = "Pod"
	GrantKind       = "ZoneGrant"
	DNSProviderKind = "DNSProvider"
	NamespaceKind   = "Namespace"
)

// Informers hold one cache for each kind.
type Informers struct {
	// SystemNamespace is that of Lockstep, and of the instances of cluster-scoped clusters that name none.
	SystemNamespace string
	// byKind holds the informers of Pods, ZoneGrants, DNSProviders, Namespaces and all kinds that have a SyncStatus.
	byKind map[string]cache.SharedIndexInformer
	// handled report whether all that was in a cache when it was first filled has been handled.
	handled []cache.InformerSynced
	live    LiveReader
	// list is nil where nothing is listed past the caches.
	list   LiveLister
	caches *cachehealth.Monitor
	pool   intern.Pool
}

// LiveReader reads the metadata of one object past the caches.
type LiveReader func(ctx context.Context, kind subject.Kind, namespace, name string) (metav1.Object, error)

// LiveLister reads the metadata of all objects of a kind in a namespace past the caches, and the resourceVersion of the list. It
// reads nothing if there are too many.
type LiveLister func(ctx context.Context, kind subject.Kind, namespace string) (all []metav1.Object, resourceVersion string, err error)

// New returns the caches of the Kubernetes cluster at config; Run fills them. systemNamespace is that of Lockstep, and
// of the instances of cluster-scoped clusters that name none.
func New(config *rest.Config, systemNamespace string) (*Informers, error) {
	from, err := listerWatchers(config)
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for metadata: %w", err)
	}
	i := NewFrom(from, newLiveReader(client), systemNamespace)
	i.ListLive(newLiveLister(client))
	return i, nil
}

// ListLive says how objects are listed past the caches.
func (i *Informers) ListLive(list LiveLister) { i.list = list }

// NewFrom returns caches that are filled from wherever the kind of an object comes from.
func NewFrom(from func(example runtime.Object) cache.ListerWatcher, live LiveReader, systemNamespace string) *Informers {
	i := &Informers{SystemNamespace: systemNamespace, live: live, caches: cachehealth.NewMonitor(), byKind: map[string]cache.SharedIndexInformer{}}
	for kind, example := range map[string]runtime.Object{
		PodKind: &corev1.Pod{}, GrantKind: &v1beta1.ZoneGrant{}, DNSProviderKind: &v1beta1.DNSProvider{}, NamespaceKind: &corev1.Namespace{},
		subject.ZoneKind.Kind: &v1beta1.DNSZone{}, subject.EndpointKind.Kind: &v1alpha1.DNSEndpoint{},
		subject.InstanceKind.Kind: &v1beta1.Bind9Instance{}, subject.ClusterKind.Kind: &v1beta1.Bind9Cluster{},
	} {
		i.byKind[kind] = i.newInformer(from(example), example)
	}
	for kind, example := range map[subject.Kind]runtime.Object{
		subject.GlobalClusterKind: &v1beta1.Bind9GlobalCluster{}, subject.ProviderKind: &v1beta1.ClusterBind9Provider{},
	} {
		i.byKind[kind.Kind] = i.newInformer(inNamespaceOfInstances(from(example), systemNamespace), example)
	}
	for _, k := range v1beta1.RecordKinds {
		i.byKind[k.Kind] = i.newInformer(from(k.New()), k.New())
	}
	return i
}

func (i *Informers) newInformer(from cache.ListerWatcher, example runtime.Object) cache.SharedIndexInformer {
	informer := i.caches.NewInformer(from, example, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	_ = informer.SetTransform(i.transform) // fails only once the informer runs
	return informer
}

// transform drops what is not read here, the long lists in the status of zones among it, and has objects share what they have in common.
func (i *Informers) transform(o any) (any, error) {
	if zone, ok := o.(*v1beta1.DNSZone); ok {
		zone.Status.Records, zone.Status.ForeignRRsets = nil, nil
	}
	return i.pool.Transform(o)
}

// Run fills the caches and keeps them current until the context ends. Kinds that do not exist yet are waited for.
func (i *Informers) Run(ctx context.Context) {
	for _, informer := range i.byKind {
		go informer.RunWithContext(ctx)
	}
	<-ctx.Done()
}

// HasSynced reports whether every cache holds what the Kubernetes cluster holds, and every handler has seen it.
func (i *Informers) HasSynced() bool {
	for _, informer := range i.byKind {
		if !informer.HasSynced() {
			return false
		}
	}
	return !slices.ContainsFunc(i.handled, func(synced cache.InformerSynced) bool { return !synced() })
}

// Name is the name of the readiness check that Check is. It does not depend on DNS servers.
func (i *Informers) Name() string { return "informers-synced" }

// Check fails until every cache is filled, and when one cannot be kept current.
func (i *Informers) Check(r *http.Request) error {
	var missing []string
	for kind, informer := range i.byKind {
		if !informer.HasSynced() {
			missing = append(missing, kind)
		}
	}
	switch {
	case len(missing) > 0:
		return fmt.Errorf("caches not filled yet: %s", strings.Join(missing, ", "))
	case !i.HasSynced():
		return errors.New("caches are filled, but not all of their content has been handled yet")
	}
	return i.caches.Check(r)
}

// OnEvent calls handle with the last state of every object of a kind that is added, updated or deleted. Two objects that had
// one name after another may appear as one update.
func (i *Informers) OnEvent(kind string, handle func(o metav1.Object, deleted bool)) error {
	handleAny := func(o any, deleted bool) {
		if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = t.Obj
		}
		if m, ok := o.(metav1.Object); ok {
			handle(m, deleted)
		}
	}
	registration, err := i.byKind[kind].AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { handleAny(o, false) },
		UpdateFunc: func(_, o any) { handleAny(o, false) },
		DeleteFunc: func(o any) { handleAny(o, true) },
	})
	if err == nil {
		i.handled = append(i.handled, registration.HasSynced)
	}
	return err
}

// TrackedKinds are the kinds that have a SyncStatus.
func (i *Informers) TrackedKinds() []string {
	without := []string{PodKind, GrantKind, DNSProviderKind, NamespaceKind}
	return slices.DeleteFunc(slices.Collect(maps.Keys(i.byKind)), func(kind string) bool { return slices.Contains(without, kind) })
}

// DeclaresRecords is true for the TrackedKinds whose objects declare DNS data.
func DeclaresRecords(kind string) bool {
	return kind != subject.ZoneKind.Kind && !DescribesServers(kind)
}

// DescribesServers is true for kinds whose SyncStatus is about servers instead of DNS data.
func DescribesServers(kind string) bool {
	return slices.ContainsFunc(subject.FleetKinds, func(k subject.Kind) bool { return k.Kind == kind })
}

// Namespaces are the namespaces that hold an object with a SyncStatus, sorted.
func (i *Informers) Namespaces() []string {
	all := sets.New[string]()
	for _, kind := range i.TrackedKinds() {
		all.Insert(i.Indexer(kind).ListIndexFuncValues(cache.NamespaceIndex)...)
	}
	return sets.List(all)
}

// Indexer is the cache of a kind; nil when there is none.
func (i *Informers) Indexer(kind string) cache.Indexer {
	if informer := i.byKind[kind]; informer != nil {
		return informer.GetIndexer()
	}
	return nil
}

// Exists looks for an object in the caches.
func (i *Informers) Exists(key source.ObjectKey) bool {
	_, ok := Get[metav1.Object](i, key.Kind, key.Namespace, key.Name)
	return ok
}

// List has the cached objects of a kind in a namespace, or in all with "". They must not be changed.
func List[T any](i *Informers, kind, namespace string) []T {
	if namespace == "" {
		return castAll[T](i.Indexer(kind).List())
	}
	items, _ := i.Indexer(kind).ByIndex(cache.NamespaceIndex, namespace) // fails only without the index
	return castAll[T](items)
}

// Get finds one cached object, which must not be changed.
func Get[T any](i *Informers, kind, namespace, name string) (T, bool) {
	var none T
	indexer := i.Indexer(kind)
	if indexer == nil {
		return none, false
	}
	o, exists, err := indexer.GetByKey(namespace + "/" + name)
	if err != nil || !exists {
		return none, false
	}
	t, ok := o.(T)
	return t, ok
}

func castAll[T any](items []any) []T {
	out := make([]T, 0, len(items))
	for _, o := range items {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

// Keys lists the cached objects of a kind in a namespace, or in all with "".
func (i *Informers) Keys(kind, namespace string) []source.ObjectKey {
	var keys []source.ObjectKey
	for _, o := range List[metav1.Object](i, kind, namespace) {
		keys = append(keys, source.ObjectKey{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()})
	}
	return keys
}

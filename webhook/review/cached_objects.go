package review

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
)

// Objects are the stored objects that a new one is compared with. What the methods give belongs to a cache: it must not be
// changed.
type Objects interface {
	liveReader
	// zoneCache returns the zones, and which of them takes a record or an endpoint.
	zoneCache() *membership.Cache
	// recordsOf are all records of a namespace.
	recordsOf(ctx context.Context, namespace string) ([]v1beta1.Record, error)
	// clusterExists reports whether there is a cluster of the name in a namespace or, without one, among those of all namespaces.
	hasCluster(ctx context.Context, namespace, name string) (bool, error)
	// clusterOf is the cluster that an instance belongs to, without an Object if it is not there.
	clusterOf(ctx context.Context, instance *v1beta1.Bind9Instance) (inventory.Cluster, error)
	// terminating reports whether the namespace is being deleted.
	terminating(ctx context.Context, namespace string) (bool, error)
	// instances are all instances.
	instances(ctx context.Context) ([]*v1beta1.Bind9Instance, error)
	// clustersOf are the Bind9Clusters of a namespace.
	clustersOf(ctx context.Context, namespace string) ([]*v1beta1.Bind9Cluster, error)
	// fleet decides on which servers zones are. It is made of all instances, clusters and grants.
	fleet(ctx context.Context) (*membership.Fleet, error)
	// liveFleet is fleet with the clusters and grants as they are stored at this moment; nil without an answer.
	liveFleet(ctx context.Context) *membership.Fleet
	// recordsUnder are the records of a kind and namespace that have the key (index_keys.go). Some may turn out to have another
	// name or zone.
	recordsUnder(ctx context.Context, kind v1beta1.RecordKind, namespace, key string) ([]v1beta1.Record, error)
	// endpointsUnder are the DNSEndpoints of all namespaces with an endpoint that has the key.
	endpointsUnder(ctx context.Context, key string) ([]*v1alpha1.DNSEndpoint, error)
	// countObjects counts the zones, records or DNSEndpoints of a namespace and kind; without a kind, all records and DNSEndpoints.
	countObjects(namespace, kind string) count
	// limitsFor are the grants that have limits for a namespace.
	limitsFor(namespace string) ([]*v1beta1.ZoneGrant, error)
}

// CachedObjects reads objects from informer caches.
type CachedObjects struct {
	*liveClient
	// systemNamespace is the namespace that Lockstep runs in.
	systemNamespace string
	members         *membership.Cache
	reader          client.Reader
	// records of each kind, and endpoints, are found by their keys (index_keys.go).
	records   map[string]toolscache.Indexer
	endpoints toolscache.Indexer
	// grants are found by the namespaces that they have limits for.
	grants toolscache.Indexer
	counts objectCounts
	// synced are those of the handlers of events.
	synced []toolscache.InformerSynced
}

// NewCachedObjects starts a cache of every kind that is looked at, with its indexes. direct reads past the cache. systemNamespace is the
// namespace that Lockstep runs in.
func NewCachedObjects(c cache.Cache, direct client.Reader, systemNamespace string) (*CachedObjects, error) {
	ctx := context.Background()
	zones, err := c.GetInformer(ctx, &v1beta1.DNSZone{})
	if err != nil {
		return nil, fmt.Errorf("watching zones: %w", err)
	}
	members := membership.NewCache()
	handle, err := zones.AddEventHandler(members.ZoneHandler())
	if err != nil {
		return nil, fmt.Errorf("indexing zones: %w", err)
	}
	o := &CachedObjects{systemNamespace: systemNamespace, members: members, liveClient: newLiveClient(direct), reader: c, records: map[string]toolscache.Indexer{},
		synced: []toolscache.InformerSynced{handle.HasSynced}}
	namespaces, err := c.GetInformer(ctx, namespaceMetadata(""))
	if err != nil {
		return nil, fmt.Errorf("watching namespaces: %w", err)
	}
	labeled, err := namespaces.AddEventHandler(members.NamespaceHandler())
	if err != nil {
		return nil, fmt.Errorf("indexing namespaces: %w", err)
	}
	weighed, err := zones.AddEventHandler(&o.counts)
	if err != nil {
		return nil, fmt.Errorf("counting zones: %w", err)
	}
	o.synced = append(o.synced, labeled.HasSynced, weighed.HasSynced)
	for _, kind := range v1beta1.RecordKinds {
		if o.records[kind.Kind], err = o.countedInformer(ctx, c, kind.New()); err != nil {
			return nil, fmt.Errorf("indexing %s: %w", kind.Resource, err)
		}
	}
	if o.endpoints, err = o.countedInformer(ctx, c, &v1alpha1.DNSEndpoint{}); err != nil {
		return nil, fmt.Errorf("indexing DNSEndpoints: %w", err)
	}
	grants, err := indexedInformer(ctx, c, &v1beta1.ZoneGrant{})
	if err != nil {
		return nil, fmt.Errorf("indexing ZoneGrants: %w", err)
	}
	o.grants = grants.GetIndexer()
	if err := startInformers(ctx, c); err != nil {
		return nil, err
	}
	return o, nil
}

// countedInformer is indexedInformer, of a kind whose objects are counted.
func (o *CachedObjects) countedInformer(ctx context.Context, c cache.Cache, kind client.Object) (toolscache.Indexer, error) {
	informer, err := indexedInformer(ctx, c, kind)
	if err != nil {
		return nil, err
	}
	handle, err := informer.AddEventHandler(&o.counts)
	if err != nil {
		return nil, fmt.Errorf("counting objects: %w", err)
	}
	o.synced = append(o.synced, handle.HasSynced)
	return informer.GetIndexer(), nil
}

// indexedInformer starts a cache of a kind with an index of keys. A review asks two dozen times for what is under a key, mostly in
// vain: the cache's own List would make a list of the kind each time, and copy into it what the indexer just has.
func indexedInformer(ctx context.Context, c cache.Cache, kind client.Object) (toolscache.SharedIndexInformer, error) {
	informer, err := c.GetInformer(ctx, kind)
	if err != nil {
		return nil, err
	}
	if err := informer.AddIndexers(toolscache.Indexers{keyIndex: indexKeys}); err != nil {
		return nil, err
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("the informer, a %T, has no index", informer)
	}
	return shared, nil
}

// objectsUnder returns what an indexer has under a key.
func objectsUnder[T any](indexer toolscache.Indexer, key string) ([]T, error) {
	found, err := indexer.ByIndex(keyIndex, key)
	if err != nil {
		return nil, fmt.Errorf("looking up %q: %w", key, err)
	}
	var all []T
	for _, o := range found {
		if o, ok := o.(T); ok {
			all = append(all, o)
		}
	}
	return all, nil
}

// NewScheme returns a scheme with the kinds that the webhook reads.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1beta1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering the kinds: %w", err)
	}
	return scheme, nil
}

// Zones returns the cache of zones.
func (o *CachedObjects) Zones() *membership.Cache { return o.members }

// HasSynced reports whether the cache of zones and the counts hold what the informers held when they became full.
func (o *CachedObjects) HasSynced() bool {
	return !slices.ContainsFunc(o.synced, func(synced toolscache.InformerSynced) bool { return !synced() })
}

func (o *CachedObjects) zoneCache() *membership.Cache { return o.members }

// liveZones implements latest. Where there are many zones already, all of them are not to be read.
func (o *CachedObjects) liveZones(ctx context.Context, namespace string) []*v1beta1.DNSZone {
	if o.members.CountZones(namespace) >= pageLimit {
		return nil
	}
	return o.liveClient.liveZones(ctx, namespace)
}

func (o *CachedObjects) instances(ctx context.Context) ([]*v1beta1.Bind9Instance, error) {
	var list v1beta1.Bind9InstanceList
	if err := o.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing instances: %w", err)
	}
	return pointersTo(list.Items), nil
}

func (o *CachedObjects) clustersOf(ctx context.Context, namespace string) ([]*v1beta1.Bind9Cluster, error) {
	var list v1beta1.Bind9ClusterList
	if err := o.reader.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	return pointersTo(list.Items), nil
}

func (o *CachedObjects) fleet(ctx context.Context) (*membership.Fleet, error) {
	instances, err := o.instances(ctx)
	if err != nil {
		return nil, err
	}
	return inventory.ReadFleet(ctx, o.reader, o.systemNamespace, instances, client.UnsafeDisableDeepCopy)
}

func (o *CachedObjects) liveFleet(ctx context.Context) (f *membership.Fleet) {
	o.read(ctx, func(ctx context.Context) error {
		instances, err := o.instances(ctx)
		if err != nil {
			return err
		}
		f, err = inventory.ReadFleet(ctx, o.liveClient, o.systemNamespace, instances, client.Limit(pageLimit))
		return err
	})
	return f
}

func (o *CachedObjects) recordsUnder(_ context.Context, kind v1beta1.RecordKind, namespace, key string) ([]v1beta1.Record, error) {
	return objectsUnder[v1beta1.Record](o.records[kind.Kind], inNamespace(namespace, key))
}

func (o *CachedObjects) recordsOf(ctx context.Context, namespace string) ([]v1beta1.Record, error) {
	var all []v1beta1.Record
	for _, kind := range v1beta1.RecordKinds {
		records, err := listRecords(ctx, o.reader, kind, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
	}
	return all, nil
}

// listRecords returns records of a kind.
func listRecords(ctx context.Context, reader client.Reader, kind v1beta1.RecordKind, options ...client.ListOption) ([]v1beta1.Record, error) {
	list, ok := kind.NewList().(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%s has no list", kind.Kind)
	}
	if err := reader.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Resource, err)
	}
	var records []v1beta1.Record
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if record, ok := item.(v1beta1.Record); ok {
			records = append(records, record)
		}
		return nil
	})
	return records, err
}

func (o *CachedObjects) endpointsUnder(_ context.Context, key string) ([]*v1alpha1.DNSEndpoint, error) {
	return objectsUnder[*v1alpha1.DNSEndpoint](o.endpoints, key)
}

func (o *CachedObjects) countObjects(namespace, kind string) count {
	return o.counts.of(namespace, kind)
}

func (o *CachedObjects) limitsFor(namespace string) ([]*v1beta1.ZoneGrant, error) {
	named, err := objectsUnder[*v1beta1.ZoneGrant](o.grants, namespace)
	if err != nil {
		return nil, err
	}
	all, err := objectsUnder[*v1beta1.ZoneGrant](o.grants, allNamespaces)
	return append(named, all...), err
}

// StripForCache drops what no review looks at before an object enters a cache.
func StripForCache(obj any) (any, error) {
	o, ok := obj.(client.Object)
	if !ok {
		return obj, nil
	}
	o.SetManagedFields(nil)
	switch o := obj.(type) {
	case v1beta1.Record:
		*o.GetRecordStatus() = v1beta1.RecordStatus{}
	case *v1alpha1.DNSEndpoint:
		o.Status = v1alpha1.DNSEndpointStatus{}
	}
	return obj, nil
}

// watchedKinds are the kinds that are looked up by their name alone.
func watchedKinds() []client.Object {
	return []client.Object{&v1beta1.Bind9Instance{}, &v1beta1.Bind9Cluster{}, &v1beta1.Bind9GlobalCluster{}, &v1beta1.ClusterBind9Provider{}, &v1beta1.ZoneGrant{}, &v1beta1.DNSProvider{}}
}

// namespaceMetadata is a namespace of which only the metadata is of interest.
func namespaceMetadata(name string) *metav1.PartialObjectMetadata {
	ns := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	ns.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	return ns
}

func startInformers(ctx context.Context, c cache.Cache) error {
	for _, o := range watchedKinds() {
		if _, err := c.GetInformer(ctx, o); err != nil {
			return fmt.Errorf("watching %T: %w", o, err)
		}
	}
	return nil
}

func (o *CachedObjects) hasCluster(ctx context.Context, namespace, name string) (bool, error) {
	return clusterExists(ctx, o.reader, namespace, name)
}

func (o *CachedObjects) clusterOf(ctx context.Context, instance *v1beta1.Bind9Instance) (inventory.Cluster, error) {
	return inventory.ClusterOf(ctx, o.reader, instance, o.systemNamespace)
}

// clusterExists looks for a cluster in a namespace or, without one, among those of all namespaces.
func clusterExists(ctx context.Context, reader client.Reader, namespace, name string) (bool, error) {
	kinds := []client.Object{&v1beta1.Bind9GlobalCluster{}, &v1beta1.ClusterBind9Provider{}}
	if namespace != "" {
		kinds = []client.Object{&v1beta1.Bind9Cluster{}}
	}
	for _, kind := range kinds {
		err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, kind)
		switch {
		case err == nil && kind.GetDeletionTimestamp() == nil:
			return true, nil
		case client.IgnoreNotFound(err) != nil:
			return false, fmt.Errorf("looking for %T %s: %w", kind, name, err)
		}
	}
	return false, nil
}

func (o *CachedObjects) terminating(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	ns := namespaceMetadata("")
	if err := o.reader.Get(ctx, client.ObjectKey{Name: name}, ns); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return ns.DeletionTimestamp != nil, nil
}

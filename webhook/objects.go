package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// ownerNameIndex is the field index of records and DNSEndpoints in the caches.
const ownerNameIndex = "ownerName"

// objects are the stored objects that a new one is compared with. What the methods give belongs to a cache: it must not be
// changed.
type objects interface {
	// zoneOf is the zone that takes the record, nil when none does.
	zoneOf(record v1beta1.Record) *v1beta1.DNSZone
	// endpointZone is the zone that takes a name in a DNSEndpoint of the namespace, nil when none does.
	endpointZone(namespace, dnsName string) *v1beta1.DNSZone
	// hasZones tells whether there is any zone in the namespace.
	hasZones(namespace string) bool
	// zonesNamed are the zones of all namespaces that have this DNS name.
	zonesNamed(zoneName string) []*v1beta1.DNSZone
	// instances are all instances.
	instances(ctx context.Context) ([]*v1beta1.Bind9Instance, error)
	// neighbours are the records of all kinds, in the record's namespace, that may have the record's owner name in the
	// zone, without the record itself. Some may turn out to have another name or zone.
	neighbours(ctx context.Context, zone *v1beta1.DNSZone, record v1beta1.Record) ([]v1beta1.Record, error)
	// endpointsAt are the DNSEndpoints of all namespaces with an endpoint of the owner name, which is canonical.
	endpointsAt(ctx context.Context, owner string) ([]*v1alpha1.DNSEndpoint, error)
}

// cached reads objects from informer caches.
type cached struct {
	*zoneIndex
	reader client.Reader
	// zonesIndexed tells whether the index of zones holds what the cache held when it became full.
	zonesIndexed toolscache.InformerSynced
}

// newCached starts a cache of every kind that is looked at, with its indexes.
func newCached(c cache.Cache) (*cached, error) {
	ctx := context.Background()
	zones, err := c.GetInformer(ctx, &v1beta1.DNSZone{})
	if err != nil {
		return nil, fmt.Errorf("watching zones: %w", err)
	}
	index := newZoneIndex()
	handle, err := zones.AddEventHandler(index)
	if err != nil {
		return nil, fmt.Errorf("indexing zones: %w", err)
	}
	for _, kind := range v1beta1.RecordKinds {
		if err := c.IndexField(ctx, kind.New(), ownerNameIndex, func(o client.Object) []string {
			return ownerNames(o.(v1beta1.Record))
		}); err != nil {
			return nil, fmt.Errorf("indexing %s: %w", kind.Resource, err)
		}
	}
	if err := c.IndexField(ctx, &v1alpha1.DNSEndpoint{}, ownerNameIndex, func(o client.Object) []string {
		return endpointOwners(o.(*v1alpha1.DNSEndpoint))
	}); err != nil {
		return nil, fmt.Errorf("indexing DNSEndpoints: %w", err)
	}
	if _, err := c.GetInformer(ctx, &v1beta1.Bind9Instance{}); err != nil {
		return nil, fmt.Errorf("watching instances: %w", err)
	}
	return &cached{zoneIndex: index, reader: c, zonesIndexed: handle.HasSynced}, nil
}

func (o *cached) instances(ctx context.Context) ([]*v1beta1.Bind9Instance, error) {
	var list v1beta1.Bind9InstanceList
	if err := o.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing instances: %w", err)
	}
	instances := make([]*v1beta1.Bind9Instance, 0, len(list.Items))
	for i := range list.Items {
		instances = append(instances, &list.Items[i])
	}
	return instances, nil
}

// neighbours asks for the owner name, and for its first label among the records that are in no zone yet.
func (o *cached) neighbours(ctx context.Context, zone *v1beta1.DNSZone, record v1beta1.Record) ([]v1beta1.Record, error) {
	owner, err := source.OwnerName(record.RecordName(), zone.Spec.ZoneName)
	if err != nil {
		return nil, fmt.Errorf("naming the record: %w", err)
	}
	keys := []string{owner, unstamped(owner)}
	if dnsName(owner) == source.DNSName(zone) {
		keys = append(keys, unstamped("@"))
	}
	var neighbours []v1beta1.Record
	for _, kind := range v1beta1.RecordKinds {
		for _, key := range keys {
			some, err := o.recordsAt(ctx, kind, record.GetNamespace(), key)
			if err != nil {
				return nil, err
			}
			neighbours = append(neighbours, some...)
		}
	}
	return slices.DeleteFunc(neighbours, func(other v1beta1.Record) bool { return identity(other) == identity(record) }), nil
}

// recordsAt are the records of a kind and namespace that the index has under the key.
func (o *cached) recordsAt(ctx context.Context, kind v1beta1.RecordKind, namespace, key string) ([]v1beta1.Record, error) {
	list, ok := kind.NewList().(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%s has no list", kind.Kind)
	}
	if err := o.reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy,
		client.MatchingFields{ownerNameIndex: key}); err != nil {
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

func (o *cached) endpointsAt(ctx context.Context, owner string) ([]*v1alpha1.DNSEndpoint, error) {
	var list v1alpha1.DNSEndpointList
	if err := o.reader.List(ctx, &list, client.UnsafeDisableDeepCopy, client.MatchingFields{ownerNameIndex: owner}); err != nil {
		return nil, fmt.Errorf("listing DNSEndpoints: %w", err)
	}
	endpoints := make([]*v1alpha1.DNSEndpoint, 0, len(list.Items))
	for i := range list.Items {
		endpoints = append(endpoints, &list.Items[i])
	}
	return endpoints, nil
}

// endpointOwners are the owner names of a DNSEndpoint, each once.
func endpointOwners(e *v1alpha1.DNSEndpoint) []string {
	var names []string
	for _, key := range source.PublishedKeys(&v1alpha1.DNSEndpoint{Spec: e.Spec}, ".") {
		names = append(names, key.Name)
	}
	return slices.Compact(names) // The keys are sorted by name.
}

// ownerNames are what the index has a record under: the owner name in the zone that its stamp names. The stamp may lag
// behind for a moment, which admission can bear: the controller has the last word on conflicts. Going by labels instead
// would put the "www" of thousands of zones under one key.
func ownerNames(record v1beta1.Record) []string {
	stamp := record.GetAnnotations()[v1beta1.ZoneAnnotation]
	if stamp == "" {
		return []string{unstamped(record.RecordName())}
	}
	owner, err := source.OwnerName(record.RecordName(), stamp)
	if err != nil {
		return nil // The controller does not accept it either.
	}
	return []string{owner}
}

// unstamped is what the index has the records under that are in no zone yet: their first label, because they may be
// written complete or relative to a zone that is not known. Owner names end in a dot, so none is taken for such a key.
func unstamped(name string) string {
	label, _, _ := strings.Cut(strings.ToLower(name), ".")
	return "/" + label
}

// identity tells records of one namespace apart.
func identity(record v1beta1.Record) string {
	return v1beta1.KindOf(record).Kind + "/" + record.GetName()
}

// strip drops what no review looks at before an object enters a cache.
func strip(obj any) (any, error) {
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

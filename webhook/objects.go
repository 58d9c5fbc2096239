package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// Field indexes of the caches.
const (
	zoneNameIndex  = "zoneName"
	ownerNameIndex = "ownerName"
)

// objects are the stored objects that a new one is compared with. What the methods give belongs to a cache: it must not be
// changed.
type objects interface {
	// zones are the zones of a namespace.
	zones(ctx context.Context, namespace string) ([]*v1beta1.DNSZone, error)
	// zonesNamed are the zones of all namespaces that have this DNS name.
	zonesNamed(ctx context.Context, zoneName string) ([]*v1beta1.DNSZone, error)
	// instances are all instances.
	instances(ctx context.Context) ([]*v1beta1.Bind9Instance, error)
	// neighbours are the records of all kinds, in the record's namespace, that may have the record's owner name in the
	// zone, without the record itself. Some may turn out to have another name.
	neighbours(ctx context.Context, zone *v1beta1.DNSZone, record v1beta1.Record) ([]v1beta1.Record, error)
}

// cached reads objects from informer caches.
type cached struct {
	reader client.Reader
}

// newCached starts a cache of every kind that is looked at, with its indexes.
func newCached(c cache.Cache) (*cached, error) {
	ctx := context.Background()
	if err := c.IndexField(ctx, &v1beta1.DNSZone{}, zoneNameIndex, func(o client.Object) []string {
		return []string{zoneKey(o.(*v1beta1.DNSZone).Spec.ZoneName)}
	}); err != nil {
		return nil, fmt.Errorf("indexing zones: %w", err)
	}
	for _, kind := range v1beta1.RecordKinds {
		if err := c.IndexField(ctx, kind.New(), ownerNameIndex, func(o client.Object) []string {
			return []string{firstLabel(o.(v1beta1.Record).RecordName())}
		}); err != nil {
			return nil, fmt.Errorf("indexing %s: %w", kind.Resource, err)
		}
	}
	if _, err := c.GetInformer(ctx, &v1beta1.Bind9Instance{}); err != nil {
		return nil, fmt.Errorf("watching instances: %w", err)
	}
	return &cached{reader: c}, nil
}

func (o *cached) zones(ctx context.Context, namespace string) ([]*v1beta1.DNSZone, error) {
	return o.listZones(ctx, client.InNamespace(namespace))
}

func (o *cached) zonesNamed(ctx context.Context, zoneName string) ([]*v1beta1.DNSZone, error) {
	return o.listZones(ctx, client.MatchingFields{zoneNameIndex: zoneKey(zoneName)})
}

func (o *cached) listZones(ctx context.Context, opts ...client.ListOption) ([]*v1beta1.DNSZone, error) {
	var list v1beta1.DNSZoneList
	if err := o.reader.List(ctx, &list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("listing zones: %w", err)
	}
	zones := make([]*v1beta1.DNSZone, 0, len(list.Items))
	for i := range list.Items {
		zones = append(zones, &list.Items[i])
	}
	return zones, nil
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

// neighbours looks for the first label only, because a name can be written relative to the zone or complete.
func (o *cached) neighbours(ctx context.Context, zone *v1beta1.DNSZone, record v1beta1.Record) ([]v1beta1.Record, error) {
	first := []string{firstLabel(record.RecordName())}
	if apex := firstLabel(zone.Spec.ZoneName); first[0] == "@" {
		first = append(first, apex)
	} else if first[0] == apex {
		first = append(first, "@")
	}
	var neighbours []v1beta1.Record
	for _, kind := range v1beta1.RecordKinds {
		for _, label := range first {
			some, err := o.recordsAt(ctx, kind, record.GetNamespace(), label)
			if err != nil {
				return nil, err
			}
			neighbours = append(neighbours, some...)
		}
	}
	return slices.DeleteFunc(neighbours, func(other v1beta1.Record) bool { return identity(other) == identity(record) }), nil
}

// recordsAt are the records of a kind and namespace whose name has this first label.
func (o *cached) recordsAt(ctx context.Context, kind v1beta1.RecordKind, namespace, label string) ([]v1beta1.Record, error) {
	list, ok := kind.NewList().(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%s has no list", kind.Kind)
	}
	if err := o.reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy,
		client.MatchingFields{ownerNameIndex: label}); err != nil {
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

// firstLabel is what the index holds of an owner name.
func firstLabel(name string) string {
	label, _, _ := strings.Cut(strings.ToLower(name), ".")
	return label
}

// identity tells records of one namespace apart.
func identity(record v1beta1.Record) string {
	return v1beta1.KindOf(record).Kind + "/" + record.GetName()
}

// zoneKey is a zone name as the index has it.
func zoneKey(zoneName string) string { return strings.ToLower(strings.TrimSuffix(zoneName, ".")) }

// strip drops what no review looks at before an object enters a cache.
func strip(obj any) (any, error) {
	o, ok := obj.(client.Object)
	if !ok {
		return obj, nil
	}
	o.SetManagedFields(nil)
	if record, ok := obj.(v1beta1.Record); ok {
		*record.GetRecordStatus() = v1beta1.RecordStatus{}
	}
	return obj, nil
}

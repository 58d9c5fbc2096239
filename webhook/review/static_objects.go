package review

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
)

// staticObjects are objects that are all there is: those of a folder of manifests. It is no cache, and nothing changes in it once it
// is filled.
type staticObjects struct {
	noLiveReader
	members    *membership.Cache
	servers    membership.FleetObjects
	recordList []v1beta1.Record
	clusters   map[types.NamespacedName][]inventory.Cluster
	namespaced []*v1beta1.Bind9Cluster
	records    map[recordKey][]v1beta1.Record
	endpoints  map[string][]*v1alpha1.DNSEndpoint
	configMaps map[types.NamespacedName]*corev1.ConfigMap
	counts     objectCounts
}

// recordKey is what records are found by.
type recordKey struct{ kind, namespace, key string }

// newStaticObjects takes objects of our kinds, in any order; others are passed over.
func newStaticObjects(all ...client.Object) *staticObjects {
	s := &staticObjects{members: membership.NewCache(), clusters: map[types.NamespacedName][]inventory.Cluster{}, records: map[recordKey][]v1beta1.Record{}, endpoints: map[string][]*v1alpha1.DNSEndpoint{}, configMaps: map[types.NamespacedName]*corev1.ConfigMap{}}
	for _, o := range all {
		switch o := o.(type) {
		case *v1beta1.DNSZone:
			s.members.SetZone(o)
		case *corev1.Namespace:
			labels := map[string]string{corev1.LabelMetadataName: o.Name}
			maps.Copy(labels, o.Labels)
			s.members.SetNamespace(o.Name, labels)
		case *corev1.ConfigMap:
			s.configMaps[client.ObjectKeyFromObject(o)] = o
		case *v1beta1.Bind9Instance:
			s.servers.Instances = append(s.servers.Instances, o)
		case *v1beta1.DNSProvider:
			s.servers.DNSProviders = append(s.servers.DNSProviders, o)
		case *v1beta1.ZoneGrant:
			s.servers.Grants = append(s.servers.Grants, o)
		case v1beta1.Record:
			s.recordList = append(s.recordList, o)
		case *v1beta1.Bind9Cluster:
			s.namespaced = append(s.namespaced, o)
		case *v1beta1.Bind9GlobalCluster:
			s.servers.Clusters = append(s.servers.Clusters, o)
		case *v1beta1.ClusterBind9Provider:
			s.servers.Providers = append(s.servers.Providers, o)
		}
		switch o.(type) {
		case *v1beta1.Bind9Cluster, *v1beta1.Bind9GlobalCluster, *v1beta1.ClusterBind9Provider:
			key := client.ObjectKeyFromObject(o)
			s.clusters[key] = append(s.clusters[key], inventory.AsCluster(o, defaultHome))
		}
	}
	for _, record := range s.recordList {
		s.members.AssumeNamespace(record.GetNamespace())
	}
	for _, o := range all { // now that all zones and namespaces are known
		s.addKeys(o)
		s.counts.add(o, 1)
	}
	return s
}

func (s *staticObjects) addKeys(o client.Object) {
	switch o := o.(type) {
	case v1beta1.Record:
		keys := []string{unstampedKey(o.RecordName())}
		if zone := s.members.ZoneOfRecord(o); zone != nil {
			keys = keysIn(o, zone.Spec.ZoneName)
		}
		for _, key := range keys {
			for _, namespace := range namespacesOf(o) {
				at := recordKey{v1beta1.KindOf(o).Kind, namespace, key}
				s.records[at] = append(s.records[at], o)
			}
		}
	case *v1alpha1.DNSEndpoint:
		for _, key := range endpointKeys(o) {
			s.endpoints[key] = append(s.endpoints[key], o)
		}
	}
}

func (s *staticObjects) zoneCache() *membership.Cache { return s.members }

func (s *staticObjects) instances(context.Context) ([]*v1beta1.Bind9Instance, error) {
	return s.servers.Instances, nil
}

func (s *staticObjects) clustersOf(_ context.Context, namespace string) ([]*v1beta1.Bind9Cluster, error) {
	return slices.DeleteFunc(slices.Clone(s.namespaced), func(c *v1beta1.Bind9Cluster) bool { return c.Namespace != namespace }), nil
}

// defaultHome is the namespace that Lockstep runs in unless it is installed differently.
const defaultHome = "lockstep-system"

func (s *staticObjects) fleet(context.Context) (*membership.Fleet, error) {
	return membership.NewFleet(s.servers, defaultHome), nil
}

func (s *staticObjects) liveFleet(context.Context) *membership.Fleet { return nil }

func (s *staticObjects) recordsOf(_ context.Context, namespace string) ([]v1beta1.Record, error) {
	return slices.DeleteFunc(slices.Clone(s.recordList), func(r v1beta1.Record) bool { return r.GetNamespace() != namespace }), nil
}

func (s *staticObjects) hasCluster(_ context.Context, namespace, name string) (bool, error) {
	return len(s.clusters[types.NamespacedName{Namespace: namespace, Name: name}]) > 0, nil
}

func (s *staticObjects) clusterOf(_ context.Context, instance *v1beta1.Bind9Instance) (inventory.Cluster, error) {
	for _, candidate := range membership.ClusterCandidates(instance.Namespace, instance.Spec.ClusterRef) {
		for _, cluster := range s.clusters[candidate.Key] {
			if cluster.Namespace == instance.Namespace {
				return cluster, nil
			}
		}
	}
	return inventory.Cluster{}, nil
}

func (s *staticObjects) terminating(context.Context, string) (bool, error) { return false, nil }

func (s *staticObjects) recordsUnder(_ context.Context, kind v1beta1.RecordKind, namespace, key string) ([]v1beta1.Record, error) {
	return s.records[recordKey{kind.Kind, namespace, key}], nil
}

func (s *staticObjects) endpointsUnder(_ context.Context, key string) ([]*v1alpha1.DNSEndpoint, error) {
	return s.endpoints[key], nil
}

func (s *staticObjects) countObjects(namespace, kind string) count {
	return s.counts.of(namespace, kind)
}

func (s *staticObjects) limitsFor(namespace string) ([]*v1beta1.ZoneGrant, error) {
	return slices.DeleteFunc(slices.Clone(s.servers.Grants), func(grant *v1beta1.ZoneGrant) bool {
		keys := limitedNamespaces(grant)
		return !slices.Contains(keys, namespace) && !slices.Contains(keys, allNamespaces)
	}), nil
}

package review

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
)

// staticObjects are objects that are all there is: those of a folder of manifests. It is no cache, and nothing changes in it once it
// is filled.
type staticObjects struct {
	noLiveReader
	members    *membership.Cache
	servers    membership.FleetObjects
	recordList []v1beta1.Record
	clusters   map[types.NamespacedName]bool
	records    map[recordKey][]v1beta1.Record
	endpoints  map[string][]*v1alpha1.DNSEndpoint
	counts     recordCounts
}

// recordKey is what records are found by.
type recordKey struct{ kind, namespace, key string }

// newStaticObjects takes objects of our kinds, in any order; others are passed over.
func newStaticObjects(all ...client.Object) *staticObjects {
	g := &staticObjects{members: membership.NewCache(), clusters: map[types.NamespacedName]bool{}, records: map[recordKey][]v1beta1.Record{}, endpoints: map[string][]*v1alpha1.DNSEndpoint{}}
	for _, o := range all {
		switch o := o.(type) {
		case *v1beta1.DNSZone:
			g.members.SetZone(o)
		case *v1beta1.Bind9Instance:
			g.servers.Instances = append(g.servers.Instances, o)
		case *v1beta1.DNSProvider:
			g.servers.DNSProviders = append(g.servers.DNSProviders, o)
		case *v1beta1.ZoneGrant:
			g.servers.Grants = append(g.servers.Grants, o)
		case v1beta1.Record:
			g.recordList = append(g.recordList, o)
		case *v1beta1.Bind9GlobalCluster:
			g.servers.Clusters = append(g.servers.Clusters, o)
		case *v1beta1.ClusterBind9Provider:
			g.servers.Providers = append(g.servers.Providers, o)
		}
		switch o.(type) {
		case *v1beta1.Bind9Cluster, *v1beta1.Bind9GlobalCluster, *v1beta1.ClusterBind9Provider:
			g.clusters[client.ObjectKeyFromObject(o)] = true
		}
	}
	for _, o := range all { // now that all zones are known
		g.addKeys(o)
		g.counts.add(o, 1)
	}
	return g
}

func (g *staticObjects) addKeys(o client.Object) {
	switch o := o.(type) {
	case v1beta1.Record:
		keys := []string{unstampedKey(o.RecordName())}
		if zone := g.members.ZoneOfRecord(o); zone != nil {
			keys = keysIn(o, zone.Spec.ZoneName)
		}
		for _, key := range keys {
			at := recordKey{v1beta1.KindOf(o).Kind, o.GetNamespace(), key}
			g.records[at] = append(g.records[at], o)
		}
	case *v1alpha1.DNSEndpoint:
		for _, key := range endpointKeys(o) {
			g.endpoints[key] = append(g.endpoints[key], o)
		}
	}
}

func (g *staticObjects) zoneCache() *membership.Cache { return g.members }

func (g *staticObjects) instances(context.Context) ([]*v1beta1.Bind9Instance, error) {
	return g.servers.Instances, nil
}

// defaultHome is the namespace that Lockstep runs in unless it is installed differently.
const defaultHome = "lockstep-system"

func (g *staticObjects) fleet(context.Context) (*membership.Fleet, error) {
	return membership.NewFleet(g.servers, defaultHome), nil
}

func (g *staticObjects) liveFleet(context.Context) *membership.Fleet { return nil }

func (g *staticObjects) recordsOf(_ context.Context, namespace string) ([]v1beta1.Record, error) {
	return slices.DeleteFunc(slices.Clone(g.recordList), func(r v1beta1.Record) bool { return r.GetNamespace() != namespace }), nil
}

func (g *staticObjects) hasCluster(_ context.Context, namespace, name string) (bool, error) {
	return g.clusters[types.NamespacedName{Namespace: namespace, Name: name}], nil
}

func (g *staticObjects) terminating(context.Context, string) (bool, error) { return false, nil }

func (g *staticObjects) recordsUnder(_ context.Context, kind v1beta1.RecordKind, namespace, key string) ([]v1beta1.Record, error) {
	return g.records[recordKey{kind.Kind, namespace, key}], nil
}

func (g *staticObjects) endpointsUnder(_ context.Context, key string) ([]*v1alpha1.DNSEndpoint, error) {
	return g.endpoints[key], nil
}

func (g *staticObjects) countRecords(namespace, kind string) int { return g.counts.of(namespace, kind) }

func (g *staticObjects) limitsFor(namespace string) ([]*v1beta1.ZoneGrant, error) {
	return slices.DeleteFunc(slices.Clone(g.servers.Grants), func(grant *v1beta1.ZoneGrant) bool {
		keys := limitedNamespaces(grant)
		return !slices.Contains(keys, namespace) && !slices.Contains(keys, allNamespaces)
	}), nil
}

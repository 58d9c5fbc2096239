package syncstatus

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// Kind is one of the kinds that a SyncStatus can be about.
type Kind struct {
	// Kind is the Kubernetes kind, Resource its plural and Singular the kind in lower case.
	Kind, Resource, Singular string
}

// GroupVersion is the API version of the objects themselves.
func (k Kind) GroupVersion() schema.GroupVersion {
	if k == EndpointKind {
		return v1alpha1.GroupVersion
	}
	return v1beta1.GroupVersion
}

// Kinds that are not records.
var (
	ZoneKind     = Kind{"DNSZone", "dnszones", "dnszone"}
	EndpointKind = Kind{source.EndpointKind, "dnsendpoints", "dnsendpoint"}
	InstanceKind = Kind{"Bind9Instance", "bind9instances", "bind9instance"}
	ClusterKind  = Kind{"Bind9Cluster", "bind9clusters", "bind9cluster"}
	// The next two are cluster-scoped. Their SyncStatus is in the namespace of their instances.
	GlobalClusterKind = Kind{"Bind9GlobalCluster", "bind9globalclusters", "bind9globalcluster"}
	ProviderKind      = Kind{"ClusterBind9Provider", "clusterbind9providers", "clusterbind9provider"}
)

// FleetKinds are the kinds whose SyncStatus describes servers instead of data.
var FleetKinds = []Kind{InstanceKind, ClusterKind, GlobalClusterKind, ProviderKind}

// Kinds are all that have a SyncStatus, zones first.
func Kinds() []Kind {
	kinds := append([]Kind{ZoneKind, EndpointKind}, FleetKinds...)
	for _, k := range v1beta1.RecordKinds {
		kinds = append(kinds, Kind{k.Kind, k.Resource, k.Singular})
	}
	return kinds
}

// Name is the name of the SyncStatus of an object: the kind in lower case, a dot, the object's name.
func Name(kind, object string) string { return strings.ToLower(kind) + "." + object }

// ParseName splits a SyncStatus name. An object's name may contain dots, a kind never does.
func ParseName(name string) (kind Kind, object string, ok bool) {
	prefix, object, found := strings.Cut(name, ".")
	if !found || object == "" {
		return Kind{}, "", false
	}
	for _, k := range Kinds() {
		if k.Singular == prefix {
			return k, object, true
		}
	}
	return Kind{}, "", false
}

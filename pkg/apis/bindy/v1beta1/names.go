package v1beta1

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations.
const (
	// ZoneAnnotation on a record holds the spec.zoneName of the zone that selects it.
	ZoneAnnotation = GroupName + "/zone"
	// InstanceIndexAnnotation on an instance of a cluster holds its zero-based number within its role, in decimal.
	InstanceIndexAnnotation = GroupName + "/instance-index"
	// AllowZoneNamespacesAnnotation on an instance lists the other namespaces whose zones may select it, on a record or a DNSEndpoint
	// those whose zones may take it: a comma-separated list, or "*" for all. Without it only zones of the
	// object's own namespace may. The zone has to admit the object's namespace as well, by one of the next two or, for records, by
	// spec.recordsFrom[].namespaceSelector.
	AllowZoneNamespacesAnnotation = GroupName + "/allow-zone-namespaces"
	// AllowEndpointNamespacesAnnotation on a zone lists the other namespaces whose DNSEndpoints may publish in it: a
	// comma-separated list, or "*" for all. Without it only those of the zone's own namespace may.
	AllowEndpointNamespacesAnnotation = GroupName + "/allow-endpoint-namespaces"
	// AllowInstanceNamespacesAnnotation on a zone lists the other namespaces whose instances its bind9InstancesFrom may
	// select: a comma-separated list, or "*" for all. Without it only those of the zone's own namespace may be selected.
	AllowInstanceNamespacesAnnotation = GroupName + "/allow-instance-namespaces"
	// FormerNamesAnnotation on a record or DNSEndpoint holds the names and types that its spec had before and that may
	// still be in DNS: a comma-separated list of NAME/TYPE, each NAME as it was in the spec. Admission adds to it in the
	// same write that renames the object; the controller removes it once their data is gone.
	FormerNamesAnnotation = GroupName + "/former-names"
	// PausedAnnotation with the value "true" on a zone stops all changes to its servers. The zone is still observed.
	PausedAnnotation = GroupName + "/paused"
	// PruneAnnotation with the value "true" on a zone removes RRsets that no object declares.
	PruneAnnotation = GroupName + "/prune"
	// ConfirmAnnotation on a zone holds the status.heldPlan that may go out although spec.guard holds it back. It confirms that plan
	// alone, and is removed when that is done.
	ConfirmAnnotation = GroupName + "/confirm"
	// AllowDeletionAnnotation with the value "true" on a zone, instance or cluster permits its deletion although others
	// depend on it: records on the zone, zones on the cluster or on the last primary.
	AllowDeletionAnnotation = GroupName + "/allow-deletion"
	// EndpointZoneAnnotation on a Cluster of Cluster API, a CAPTCluster or a CAPTControlPlane holds the DNS name of the zone in which its
	// control plane endpoint is published.
	EndpointZoneAnnotation = GroupName + "/endpoint-zone"
	// EndpointNameAnnotation beside EndpointZoneAnnotation holds the complete name that is published. Default: the name of the
	// Cluster in that zone.
	EndpointNameAnnotation = GroupName + "/endpoint-name"
	// EndpointWildcardAnnotation with the value "true" beside EndpointZoneAnnotation publishes all names below the name as well.
	EndpointWildcardAnnotation = GroupName + "/endpoint-wildcard"
)

// Labels on the objects that belong to a cluster or instance.
const (
	// ManagedByLabel names the kind whose controller created the object, for example "Bind9Cluster".
	ManagedByLabel = GroupName + "/managed-by"
	// ClusterLabel names the cluster to which the object belongs.
	ClusterLabel = GroupName + "/cluster"
	// RoleLabel is "primary" or "secondary".
	RoleLabel = GroupName + "/role"
)

// Finalizer keeps an object until its data has been removed from the servers.
const Finalizer = GroupName + "/finalizer"

// DependentsFinalizer keeps a zone, a cluster or an instance that is being deleted at work until nothing of its namespace depends on
// it any more: records on their zone, zones on their servers. On a cluster-scoped cluster it is any zone.
const DependentsFinalizer = GroupName + "/dependents"

// IsGoing reports whether an object is being deleted and nothing waits for what depends on it: until then it works as always.
func IsGoing(o metav1.Object) bool {
	return o.GetDeletionTimestamp() != nil && !slices.Contains(o.GetFinalizers(), DependentsFinalizer)
}

// ZonesLoadedGate is the type of the pod condition, listed in the readiness gates of every BIND pod, that is True while
// the pod's named serves every zone that it should.
const ZonesLoadedGate = GroupName + "/zones-loaded"

// Defaults for settings that neither an object nor its parent sets.
const (
	// DefaultTTL, in seconds, is a record's TTL if neither the record nor its zone sets one.
	DefaultTTL int64 = 3600
	// DefaultVersion is the BIND release that runs if no version is set.
	DefaultVersion = "9.20"
	// DefaultMaxRecordsPerType is how many records of one name and type servers take that say nothing else: BIND's own default.
	DefaultMaxRecordsPerType = 100
)

// FinalizersOfBindy lists the finalizers on an object that the operator Bindy has put there, for example
// bindy.firestoned.io/arecord-finalizer. Nobody but Bindy, or a person, removes them.
func FinalizersOfBindy(o metav1.Object) (all []string) {
	for _, name := range o.GetFinalizers() {
		if strings.HasPrefix(name, GroupName+"/") && strings.HasSuffix(name, "-finalizer") {
			all = append(all, name)
		}
	}
	return all
}

package v1beta1

// Annotations.
const (
	// ZoneAnnotation is set on a record that a zone selects; its value is that zone's spec.zoneName.
	ZoneAnnotation = GroupName + "/zone"
	// InstanceIndexAnnotation is set on an instance made for a cluster; its value is the instance's zero-based number
	// among those of its role, in decimal.
	InstanceIndexAnnotation = GroupName + "/instance-index"
	// AllowZoneNamespacesAnnotation on an instance names the other namespaces whose zones may select it: a
	// comma-separated list, or "*" for all. Without it only zones of the instance's own namespace may.
	AllowZoneNamespacesAnnotation = GroupName + "/allow-zone-namespaces"
	// AllowEndpointNamespacesAnnotation on a zone names the other namespaces whose DNSEndpoints may publish in it: a
	// comma-separated list, or "*" for all. Without it only those of the zone's own namespace may.
	AllowEndpointNamespacesAnnotation = GroupName + "/allow-endpoint-namespaces"
	// FormerNamesAnnotation on a record or DNSEndpoint holds the names and types that its spec had before and that may
	// still be in DNS: a comma-separated list of NAME/TYPE, each NAME as the spec had it. Admission adds to it in the
	// very write that renames; the controller removes it once their data is gone.
	FormerNamesAnnotation = GroupName + "/former-names"
	// PausedAnnotation with the value "true" on a zone stops every change of its servers; it is only watched.
	PausedAnnotation = GroupName + "/paused"
	// PruneAnnotation with the value "true" on a zone has RRsets removed that no object declares.
	PruneAnnotation = GroupName + "/prune"
	// AllowDeletionAnnotation with the value "true" on a zone, instance or cluster lets it be deleted although others
	// depend on it: records on the zone, zones on the cluster or the last primary.
	AllowDeletionAnnotation = GroupName + "/allow-deletion"
)

// Labels on the children of a cluster or instance.
const (
	// ManagedByLabel names the kind whose controller made the object, for example "Bind9Cluster".
	ManagedByLabel = GroupName + "/managed-by"
	// ClusterLabel names the cluster that the object belongs to.
	ClusterLabel = GroupName + "/cluster"
	// RoleLabel is "primary" or "secondary".
	RoleLabel = GroupName + "/role"
)

// Finalizer keeps an object until its data has been taken off the servers.
const Finalizer = GroupName + "/finalizer"

// ZonesLoadedGate is the type of the pod condition, listed in the readiness gates of every BIND pod, that is True while
// the pod's named serves every zone that it should.
const ZonesLoadedGate = GroupName + "/zones-loaded"

// Values that apply where neither the object nor what it belongs to sets one.
const (
	// DefaultTTL, in seconds, is a record's TTL when neither the record nor its zone sets one.
	DefaultTTL int64 = 3600
	// MaxTTL is the greatest TTL, in seconds (RFC 2181, section 8).
	MaxTTL int64 = 1<<31 - 1
	// DefaultVersion is the BIND release that runs when no version is asked for.
	DefaultVersion = "9.18"
	// DefaultBindcarPort is the TCP port of the sidecar's HTTP API.
	DefaultBindcarPort int32 = 8080
)

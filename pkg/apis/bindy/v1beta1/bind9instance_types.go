package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

// Bind9Instance is a BIND server in Kubernetes: its pods, configuration, keys and Service.
//
// Most instances are created for a Bind9Cluster. One that you create yourself can belong to a cluster and inherit its
// settings, or stand alone.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={b9,b9s},categories=dns
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterRef`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.role`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Zones",type=integer,JSONPath=`.status.zonesCount`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || (size(self.metadata.name) <= 52 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",message="metadata.name must be at most 52 lower-case letters, digits and \"-\", begin with a letter and not end with \"-\": the names of the Service, the pods and their labels are made from it"
type Bind9Instance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the server to run.
	Spec Bind9InstanceSpec `json:"spec"`

	// Status is what the controller observed last.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status Bind9InstanceStatus `json:"status,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *Bind9Instance) UnmarshalJSON(data []byte) error {
	type plain Bind9Instance
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// ServerRole is the role of an instance for its zones. Users may write it in any letter case: compare with Normalize.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="self.lowerAscii() in ['primary', 'secondary']",message="spec.role must be primary or secondary"
type ServerRole string

// The roles in their normal form.
const (
	// RolePrimary holds the zones and takes updates.
	RolePrimary ServerRole = "primary"
	// RoleSecondary transfers the zones from the primaries.
	RoleSecondary ServerRole = "secondary"
)

// Bind9InstanceSpec is the desired server. Settings that it omits come from its cluster.
type Bind9InstanceSpec struct {
	// ClusterRef names the cluster that the instance belongs to: a Bind9Cluster of its namespace, or else a
	// Bind9GlobalCluster or ClusterBind9Provider. Empty for an instance that stands alone.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClusterRef string `json:"clusterRef,omitempty"`
	// Role is primary (holds the zones and takes updates) or secondary (transfers them), in any letter case.
	Role ServerRole `json:"role"`
	// Replicas is the number of pods, 0 to 100.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Replicas *int32 `json:"replicas,omitempty"`
	// Version of BIND. Defaults to the cluster's, or to 9.20.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_.-]*$')",message="spec.version must be a release of BIND such as 9.20"
	Version string `json:"version,omitempty"`
	// Image to run. It replaces the cluster's.
	//
	// +optional
	Image *ImageConfig `json:"image,omitempty"`
	// ConfigMapRefs replace generated configuration files. They replace the cluster's configMapRefs.
	//
	// +optional
	ConfigMapRefs *ConfigMapRefs `json:"configMapRefs,omitempty"`
	// Config holds options of named. Each option that is set takes precedence over the cluster's.
	//
	// +optional
	Config *Bind9Config `json:"config,omitempty"`
	// PrimaryServers are addresses or host names of primaries. It has no effect: a secondary transfers each zone from the
	// primaries of that zone.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Za-z0-9_.:-]+$') || self.matches('^[[][0-9A-Fa-f.:]+[]](:[0-9]{1,5})?$')",message="spec.primaryServers holds IP addresses or host names, each optionally followed by a port: 192.0.2.53, 192.0.2.53:5353, [2001:db8::53]:5353"
	PrimaryServers []string `json:"primaryServers,omitempty"`
	// Volumes are added to the pods. They replace the cluster's.
	//
	// +optional
	// +listType=atomic
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// VolumeMounts are added to the BIND container. They replace the cluster's.
	//
	// +optional
	// +listType=atomic
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
	// Storage configures where zone files are kept.
	//
	// +optional
	Storage *StorageConfig `json:"storage,omitempty"`
	// RNDCKey configures the rndc and TSIG keys. It replaces the role's.
	//
	// +optional
	RNDCKey *RNDCKeyConfig `json:"rndcKey,omitempty"`
	// RNDCKeys is an alias of rndcKey, which takes precedence.
	//
	// +optional
	RNDCKeys *RNDCKeyConfig `json:"rndcKeys,omitempty"`
	// RNDCSecretRef is the older form of rndcKey.secretRef. rndcKey takes precedence.
	//
	// +optional
	RNDCSecretRef *RNDCSecretRef `json:"rndcSecretRef,omitempty"`
	// BindcarConfig configures the sidecar. Each setting takes precedence over the cluster's.
	//
	// +optional
	BindcarConfig *BindcarConfig `json:"bindcarConfig,omitempty"`

	ServerConfig `json:",inline"`
}

// Phase is the stage of an object's life cycle.
//
// +kubebuilder:validation:Enum=Creating;Ready;Failed;Deleting
type Phase string

// The phases of an object's life cycle.
const (
	// PhaseCreating: starting.
	PhaseCreating Phase = "Creating"
	// PhaseReady: works as declared.
	PhaseReady Phase = "Ready"
	// PhaseFailed: a person has to act; see failureReason and failureMessage.
	PhaseFailed Phase = "Failed"
	// PhaseDeleting: finalizers are running.
	PhaseDeleting Phase = "Deleting"
)

// NodePorts are the ports at which nodes take DNS queries for a Service.
type NodePorts struct {
	// UDP is the port over UDP.
	//
	// +optional
	UDP int32 `json:"udp,omitempty"`
	// TCP is the port over TCP.
	//
	// +optional
	TCP int32 `json:"tcp,omitempty"`
}

// Bind9InstanceStatus is what the controller observed about an instance.
type Bind9InstanceStatus struct {
	// Conditions of the instance. Ready is True when all pods are ready. There is also one condition Pod-<i> for each replica.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ObservedParentGeneration is the metadata.generation of the cluster whose settings the instance has.
	//
	// +optional
	ObservedParentGeneration int64 `json:"observedParentGeneration,omitempty"`
	// Replicas is the number of pods that exist.
	//
	// +optional
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is the number of pods that are ready.
	//
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`
	// PendingCause is what keeps all pods from running that are not ready, in the words of the scheduler or of the kubelet; empty if
	// they say nothing, or not the same.
	//
	// +optional
	PendingCause string `json:"pendingCause,omitempty"`
	// ServiceAddress is the IP address, or else the host name, of the instance's Service.
	//
	// +optional
	ServiceAddress string `json:"serviceAddress,omitempty"`
	// ServiceAddresses are the IP addresses at which clients reach the Service: those of its load balancer and its external IPs, or
	// its cluster IPs if it is open to the Kubernetes cluster only.
	//
	// +optional
	// +listType=atomic
	ServiceAddresses []string `json:"serviceAddresses,omitempty"`
	// ServiceExposed is true if the Service is open to clients outside of the Kubernetes cluster: it has external IPs, or the type
	// LoadBalancer or NodePort.
	//
	// +optional
	ServiceExposed bool `json:"serviceExposed,omitempty"`
	// ServiceNodePorts are the ports of the nodes that lead to the Service.
	//
	// +optional
	ServiceNodePorts *NodePorts `json:"serviceNodePorts,omitempty"`
	// MaxRecordsPerType is how many records of one name and type all pods take. It rises when the last pod runs with a higher
	// config.maxRecordsPerType, and falls at once.
	//
	// +optional
	MaxRecordsPerType int32 `json:"maxRecordsPerType,omitempty"`
	// ClusterRef is the cluster that spec.clusterRef resolves to.
	//
	// +optional
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`
	// Zones that the instance serves or is to serve.
	//
	// +optional
	// +listType=atomic
	Zones []ZoneReference `json:"zones,omitempty"`
	// ZonesCount is the number of entries in zones.
	//
	// +optional
	ZonesCount int32 `json:"zonesCount"`
	// RNDCKeyRotation shows when the TSIG key of the instance's role (update or transfer) was created and when it is rotated.
	//
	// +optional
	RNDCKeyRotation *RNDCKeyRotationStatus `json:"rndcKeyRotation,omitempty"`

	LifecycleStatus `json:",inline"`
}

// LifecycleStatus is the part of a status that shows the phase of an object and whether a person has to act.
type LifecycleStatus struct {
	// Ready is true when the object works as declared.
	//
	// +optional
	Ready bool `json:"ready"`
	// Phase is Creating, Ready, Failed (a person has to act) or Deleting.
	//
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// PhaseSince is when the object became ready or, if it is not ready, when it last made progress. The progress deadline
	// counts from here and starts again when the spec changes or another part becomes ready.
	//
	// +optional
	PhaseSince *metav1.Time `json:"phaseSince,omitempty"`
	// FailureReason is set when a person has to act. It stays until the spec, or a Secret that it refers to, changes.
	// Transient failures never set it.
	//
	// +optional
	FailureReason string `json:"failureReason,omitempty"`
	// FailureMessage describes the failure.
	//
	// +optional
	FailureMessage string `json:"failureMessage,omitempty"`
}

// ClusterReference refers from an instance to its cluster.
type ClusterReference struct {
	// APIVersion of the cluster.
	APIVersion string `json:"apiVersion"`
	// Kind of the cluster: Bind9Cluster, Bind9GlobalCluster or ClusterBind9Provider.
	Kind string `json:"kind"`
	// Name of the cluster.
	Name string `json:"name"`
	// Namespace of the cluster. Empty for a cluster-scoped cluster.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// RNDCKeyRotationStatus shows when a TSIG key was created and when it is rotated.
type RNDCKeyRotationStatus struct {
	// CreatedAt is when the current key was created (RFC 3339).
	//
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// RotateAt is when the key is due for rotation. Absent without autoRotate.
	//
	// +optional
	RotateAt *metav1.Time `json:"rotateAt,omitempty"`
	// LastRotatedAt is when the previous key was replaced.
	//
	// +optional
	LastRotatedAt *metav1.Time `json:"lastRotatedAt,omitempty"`
	// RotationCount is the number of rotations.
	//
	// +optional
	RotationCount int64 `json:"rotationCount"`
}

// Bind9InstanceList is a list of Bind9Instance objects.
//
// +kubebuilder:object:root=true
type Bind9InstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Bind9Instance `json:"items"`
}

// PlacementConfig chooses the nodes that pods run on.
type PlacementConfig struct {
	// NodeSelector are the labels of nodes that pods may run on.
	//
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Affinity attracts pods to nodes and other pods, or keeps them apart.
	//
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// Tolerations let pods run on nodes with these taints.
	//
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// PriorityClassName is the priority of the pods. Defaults to that of the Kubernetes cluster.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName *string `json:"priorityClassName,omitempty"`
	// HostNetwork is refused: pods of servers are none of the node's network.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self",message="placement.hostNetwork is not supported: pods in the network of their node are outside of every NetworkPolicy, may not run where Pod Security enforces restricted or baseline, and cannot have port 53 there without privileges. For port 53 of nodes use service.spec.externalIPs with the addresses of the nodes, or type LoadBalancer or NodePort"
	HostNetwork bool `json:"hostNetwork,omitempty"`
	// Spread are the rules of the scheduler, in place of the default: keep the servers of a cluster that have the same role, or the pods
	// of an instance without a cluster, on different nodes and in different zones if possible. An empty list means no rules.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.topologyKey == b.topologyKey && a.whenUnsatisfiable == b.whenUnsatisfiable))",message="placement.spread has two rules with the same topologyKey and whenUnsatisfiable: remove one"
	Spread []SpreadRule `json:"spread,omitempty"`
}

// SpreadScope chooses the pods that a rule spreads.
//
// +kubebuilder:validation:Enum=Instance;Role;Cluster
type SpreadScope string

// The scopes of rules.
const (
	// SpreadInstance spreads the pods of one instance.
	SpreadInstance SpreadScope = "Instance"
	// SpreadRole spreads the servers of a cluster that have the same role.
	SpreadRole SpreadScope = "Role"
	// SpreadCluster spreads all servers of a cluster.
	SpreadCluster SpreadScope = "Cluster"
)

// SpreadRule is a topology spread constraint of pods; the pods that it counts follow from scope.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minDomains) || self.whenUnsatisfiable == 'DoNotSchedule'",message="minDomains needs whenUnsatisfiable: DoNotSchedule: set that, or leave minDomains out"
type SpreadRule struct {
	// TopologyKey is the label of nodes that names their failure domain, for example topology.kubernetes.io/zone.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="topologyKey must be the key of a label of nodes, such as topology.kubernetes.io/zone"
	TopologyKey string `json:"topologyKey"`
	// MaxSkew is the largest difference between the numbers of pods in two domains, 1 to 100.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxSkew int32 `json:"maxSkew,omitempty"`
	// WhenUnsatisfiable is what becomes of a pod for which there is no place: ScheduleAnyway, or DoNotSchedule, with which it stays
	// pending.
	//
	// +optional
	// +kubebuilder:default=ScheduleAnyway
	// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
	WhenUnsatisfiable corev1.UnsatisfiableConstraintAction `json:"whenUnsatisfiable,omitempty"`
	// Scope chooses the pods that are spread: those of the Instance, or all of its Role or of all roles in its Cluster. Defaults to
	// Role in a cluster; for an instance without a cluster it is always Instance.
	//
	// +optional
	Scope SpreadScope `json:"scope,omitempty"`
	// MinDomains is the least number of domains, 1 to 1000. Needs DoNotSchedule.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MinDomains *int32 `json:"minDomains,omitempty"`
	// NodeAffinityPolicy says whether nodes that the pod's affinity excludes count. Defaults to Honor: they do not.
	//
	// +optional
	// +kubebuilder:validation:Enum=Honor;Ignore
	NodeAffinityPolicy *corev1.NodeInclusionPolicy `json:"nodeAffinityPolicy,omitempty"`
	// NodeTaintsPolicy says whether nodes that have taints which the pod does not tolerate count. Defaults to Ignore: they do.
	//
	// +optional
	// +kubebuilder:validation:Enum=Honor;Ignore
	NodeTaintsPolicy *corev1.NodeInclusionPolicy `json:"nodeTaintsPolicy,omitempty"`
}

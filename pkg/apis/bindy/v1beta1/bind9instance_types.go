package v1beta1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bind9Instance is a BIND server in Kubernetes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Bind9Instance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the server to run.
	Spec Bind9InstanceSpec `json:"spec"`
	// Status is what the controller has observed.
	// +optional
	Status Bind9InstanceStatus `json:"status,omitempty"`
}

// ServerRole is what an instance does for its zones. Users may write it in any letter case: compare with Normalize.
type ServerRole string

// The roles in their normal form.
const (
	// RolePrimary holds the zones and takes updates.
	RolePrimary ServerRole = "primary"
	// RoleSecondary transfers the zones from the primaries.
	RoleSecondary ServerRole = "secondary"
)

// Normalize gives the role in lower case, as RolePrimary or RoleSecondary.
func (r ServerRole) Normalize() ServerRole { return ServerRole(strings.ToLower(string(r))) }

// Bind9InstanceSpec is the desired server.
type Bind9InstanceSpec struct {
	// ClusterRef names the cluster the instance belongs to; empty for a standalone instance.
	// +optional
	ClusterRef string `json:"clusterRef,omitempty"`
	// Role of the instance.
	Role ServerRole `json:"role"`
	// Replicas is the number of pods.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Version of BIND.
	// +optional
	Version string `json:"version,omitempty"`
	// Image to run.
	// +optional
	Image *ImageConfig `json:"image,omitempty"`
	// ConfigMapRefs replace generated configuration files.
	// +optional
	ConfigMapRefs *ConfigMapRefs `json:"configMapRefs,omitempty"`
	// Config are options of named.
	// +optional
	Config *Bind9Config `json:"config,omitempty"`
	// PrimaryServers are addresses of the servers that a secondary transfers from.
	// +optional
	// +listType=atomic
	PrimaryServers []string `json:"primaryServers,omitempty"`
	// Volumes are added to the pods.
	// +optional
	// +listType=atomic
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// VolumeMounts are added to the BIND container.
	// +optional
	// +listType=atomic
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
	// Storage of zone files.
	// +optional
	Storage *StorageConfig `json:"storage,omitempty"`
	// RNDCKey says where the rndc key comes from.
	// +optional
	RNDCKey *RNDCKeyConfig `json:"rndcKey,omitempty"`
	// RNDCSecretRef is the older form of rndcKey.secretRef.
	// +optional
	RNDCSecretRef *RNDCSecretRef `json:"rndcSecretRef,omitempty"`
	// BindcarConfig configures the sidecar.
	// +optional
	BindcarConfig *BindcarConfig `json:"bindcarConfig,omitempty"`
}

// Phase tells where an object is in its life.
type Phase string

// The phases of an object's life.
const (
	// PhaseCreating: being brought up.
	PhaseCreating Phase = "Creating"
	// PhaseReady: works as declared.
	PhaseReady Phase = "Ready"
	// PhaseFailed: a person has to act; see failureReason and failureMessage.
	PhaseFailed Phase = "Failed"
	// PhaseDeleting: finalizers are running.
	PhaseDeleting Phase = "Deleting"
)

// Bind9InstanceStatus is what the controller has observed about an instance.
type Bind9InstanceStatus struct {
	// Conditions of the instance.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas is the number of pods that exist.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// ReadyReplicas is the number of pods that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// ServiceAddress is the address of the instance's Service.
	// +optional
	ServiceAddress string `json:"serviceAddress,omitempty"`
	// ClusterRef points to the cluster that the instance belongs to.
	// +optional
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`
	// Zones that the instance serves.
	// +optional
	// +listType=atomic
	Zones []ZoneReference `json:"zones,omitempty"`
	// ZonesCount is the number of entries in zones.
	// +optional
	ZonesCount int32 `json:"zonesCount,omitempty"`
	// RNDCKeyRotation tells when the rndc key was made and when it changes.
	// +optional
	RNDCKeyRotation *RNDCKeyRotationStatus `json:"rndcKeyRotation,omitempty"`

	LifecycleStatus `json:",inline"`
}

// LifecycleStatus is the part of a status that tells where an object is in its life and whether a person has to act.
type LifecycleStatus struct {
	// Ready is true when the object works as declared.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// Phase of the object's life.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// FailureReason is set when a person has to act.
	// +optional
	FailureReason string `json:"failureReason,omitempty"`
	// FailureMessage explains failureReason.
	// +optional
	FailureMessage string `json:"failureMessage,omitempty"`
}

// ClusterReference points from an instance to its cluster.
type ClusterReference struct {
	// APIVersion of the cluster.
	APIVersion string `json:"apiVersion"`
	// Kind of the cluster.
	Kind string `json:"kind"`
	// Name of the cluster.
	Name string `json:"name"`
	// Namespace of the cluster; empty for a cluster-scoped one.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// RNDCKeyRotationStatus tells when an rndc key was made and when it changes.
type RNDCKeyRotationStatus struct {
	// CreatedAt is when the present key was made.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// RotateAt is when it is due to be replaced.
	// +optional
	RotateAt *metav1.Time `json:"rotateAt,omitempty"`
	// LastRotatedAt is when it was last replaced.
	// +optional
	LastRotatedAt *metav1.Time `json:"lastRotatedAt,omitempty"`
	// RotationCount is how often it was replaced.
	// +optional
	RotationCount int64 `json:"rotationCount,omitempty"`
}

// Bind9InstanceList is a list of Bind9Instance objects.
//
// +kubebuilder:object:root=true
type Bind9InstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Bind9Instance `json:"items"`
}

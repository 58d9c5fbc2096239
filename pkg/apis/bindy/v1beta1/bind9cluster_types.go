package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bind9Cluster is a set of primaries and secondaries in one namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Bind9Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the cluster to run.
	Spec Bind9ClusterSpec `json:"spec"`
	// Status is what the controller has observed.
	// +optional
	Status Bind9ClusterStatus `json:"status,omitempty"`
}

// Bind9ClusterSpec is the desired cluster. Namespaced and cluster-scoped clusters share it.
type Bind9ClusterSpec struct {
	// Version of BIND.
	// +optional
	Version string `json:"version,omitempty"`
	// Primary configures the primaries.
	// +optional
	Primary *RoleConfig `json:"primary,omitempty"`
	// Secondary configures the secondaries.
	// +optional
	Secondary *RoleConfig `json:"secondary,omitempty"`
	// Image to run.
	// +optional
	Image *ImageConfig `json:"image,omitempty"`
	// ConfigMapRefs replace generated configuration files.
	// +optional
	ConfigMapRefs *ConfigMapRefs `json:"configMapRefs,omitempty"`
	// Global are options of named for every instance.
	// +optional
	Global *Bind9Config `json:"global,omitempty"`
	// RNDCSecretRefs name Secrets with keys.
	// +optional
	// +listType=atomic
	RNDCSecretRefs []RNDCSecretRef `json:"rndcSecretRefs,omitempty"`
	// ACLs are named address match lists.
	// +optional
	ACLs map[string][]string `json:"acls,omitempty"`
	// Volumes are added to the pods.
	// +optional
	// +listType=atomic
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// VolumeMounts are added to the BIND containers.
	// +optional
	// +listType=atomic
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
}

// RoleConfig configures the instances of one role.
type RoleConfig struct {
	// Replicas is the number of instances.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Labels are added to the instances.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Service adjusts the Services of the instances.
	// +optional
	Service *ServiceConfig `json:"service,omitempty"`
	// AllowTransfer lists who may transfer zones.
	// +optional
	// +listType=atomic
	AllowTransfer []string `json:"allowTransfer,omitempty"`
	// RNDCKey says where the rndc keys come from.
	// +optional
	RNDCKey *RNDCKeyConfig `json:"rndcKey,omitempty"`
	// RNDCSecretRef is the older form of rndcKey.secretRef.
	// +optional
	RNDCSecretRef *RNDCSecretRef `json:"rndcSecretRef,omitempty"`
}

// Bind9ClusterStatus is what the controller has observed about a cluster.
type Bind9ClusterStatus struct {
	// Conditions of the cluster.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// InstanceCount is the number of instances.
	// +optional
	InstanceCount int32 `json:"instanceCount,omitempty"`
	// ReadyInstances is the number of instances that are ready.
	// +optional
	ReadyInstances int32 `json:"readyInstances,omitempty"`
	// Instances are the names of the instances.
	// +optional
	// +listType=atomic
	Instances []string `json:"instances,omitempty"`

	LifecycleStatus `json:",inline"`
}

// Bind9ClusterList is a list of Bind9Cluster objects.
//
// +kubebuilder:object:root=true
type Bind9ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Bind9Cluster `json:"items"`
}

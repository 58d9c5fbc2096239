package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bind9Cluster is a set of primaries and secondaries in one namespace, made as Bind9Instances named
// <cluster>-primary-<i> and <cluster>-secondary-<i>.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={b9c,b9cs},categories=dns
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Primary",type=integer,JSONPath=`.spec.primary.replicas`
// +kubebuilder:printcolumn:name="Secondary",type=integer,JSONPath=`.spec.secondary.replicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Bind9Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the cluster to run.
	Spec Bind9ClusterSpec `json:"spec"`

	// Status is what the controller has observed.
	//
	// +optional
	Status Bind9ClusterStatus `json:"status,omitempty"`
}

// Bind9ClusterSpec is the desired cluster. Namespaced and cluster-scoped clusters share it.
type Bind9ClusterSpec struct {
	// Version of BIND.
	//
	// +optional
	// +kubebuilder:default="9.18"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_.-]*$')",message="spec.version must be a release of BIND such as 9.18"
	Version string `json:"version,omitempty"`
	// Primary configures the primaries that are made. None are when it is absent; instances made by hand may belong to
	// the cluster all the same.
	//
	// +optional
	Primary *RoleConfig `json:"primary,omitempty"`
	// Secondary configures the secondaries that are made. None are when it is absent.
	//
	// +optional
	Secondary *RoleConfig `json:"secondary,omitempty"`
	// Image to run.
	//
	// +optional
	Image *ImageConfig `json:"image,omitempty"`
	// ConfigMapRefs replace generated configuration files.
	//
	// +optional
	ConfigMapRefs *ConfigMapRefs `json:"configMapRefs,omitempty"`
	// Global are options of named for every instance.
	//
	// +optional
	Global *Bind9Config `json:"global,omitempty"`
	// RNDCSecretRefs name Secrets with keys for transfers. Without effect: the controller makes the transfer key. To let
	// others transfer zones use allowTransfer.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	RNDCSecretRefs []RNDCSecretRef `json:"rndcSecretRefs,omitempty"`
	// ACLs are address match lists by name, to be used by that name in allowQuery and the like.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[A-Za-z0-9_.-]{1,63}$'))",message="the names in spec.acls must be 1 to 63 letters, digits, \"_\", \".\" and \"-\""
	ACLs map[string]AddressMatchList `json:"acls,omitempty"`
	// Volumes are added to the pods.
	//
	// +optional
	// +listType=atomic
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// VolumeMounts are added to the BIND containers.
	//
	// +optional
	// +listType=atomic
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
}

// RoleConfig configures the instances of one role.
type RoleConfig struct {
	// Replicas is the number of instances of the role, 0 to 100, each of one pod.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Replicas *int32 `json:"replicas,omitempty"`
	// Labels are added to the instances, where a DNSZone's bind9InstancesFrom can select them.
	//
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Service adjusts the Services of the instances.
	//
	// +optional
	Service *ServiceConfig `json:"service,omitempty"`
	// AllowTransfer lists who may transfer zones from servers of the role, in place of global.allowTransfer.
	//
	// +optional
	AllowTransfer AddressMatchList `json:"allowTransfer,omitempty"`
	// RNDCKey says how the rndc keys are made.
	//
	// +optional
	RNDCKey *RNDCKeyConfig `json:"rndcKey,omitempty"`
	// RNDCKeys is another spelling of rndcKey, which goes before it.
	//
	// +optional
	RNDCKeys *RNDCKeyConfig `json:"rndcKeys,omitempty"`
	// RNDCSecretRef is the older form of rndcKey.secretRef, which goes before it.
	//
	// +optional
	RNDCSecretRef *RNDCSecretRef `json:"rndcSecretRef,omitempty"`
}

// Bind9ClusterStatus is what the controller has observed about a cluster.
type Bind9ClusterStatus struct {
	// Conditions of the cluster. Ready: all instances are; and, for a Bind9Cluster, one condition Bind9Instance-<i> for
	// each instance.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// InstanceCount is the number of instances.
	//
	// +optional
	InstanceCount int32 `json:"instanceCount"`
	// ReadyInstances is the number of instances that are ready.
	//
	// +optional
	ReadyInstances int32 `json:"readyInstances"`
	// Instances are the names of the instances.
	//
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

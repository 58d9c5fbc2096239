package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bind9GlobalCluster is a cluster that every namespace may use.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
type Bind9GlobalCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the cluster to run.
	Spec GlobalClusterSpec `json:"spec"`
	// Status is what the controller has observed.
	// +optional
	Status Bind9ClusterStatus `json:"status,omitempty"`
}

// GlobalClusterSpec is a Bind9ClusterSpec and the namespace that its instances live in.
type GlobalClusterSpec struct {
	// Namespace in which the instances are made.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	Bind9ClusterSpec `json:",inline"`
}

// Bind9GlobalClusterList is a list of Bind9GlobalCluster objects.
//
// +kubebuilder:object:root=true
type Bind9GlobalClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Bind9GlobalCluster `json:"items"`
}

// ClusterBind9Provider is a Bind9GlobalCluster under its present public name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
type ClusterBind9Provider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the cluster to run.
	Spec GlobalClusterSpec `json:"spec"`
	// Status is what the controller has observed.
	// +optional
	Status Bind9ClusterStatus `json:"status,omitempty"`
}

// ClusterBind9ProviderList is a list of ClusterBind9Provider objects.
//
// +kubebuilder:object:root=true
type ClusterBind9ProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterBind9Provider `json:"items"`
}

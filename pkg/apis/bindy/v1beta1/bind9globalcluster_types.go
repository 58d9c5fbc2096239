package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

// GlobalClusterSpec is a Bind9ClusterSpec with the namespace of its instances.
type GlobalClusterSpec struct {
	// Namespace of the instances. Defaults to the controller's own.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	Bind9ClusterSpec `json:",inline"`
}

// Bind9GlobalCluster is a cluster of BIND servers that zones of every namespace may use by their clusterRef.
// ClusterBind9Provider is the same kind under another name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=b9gc,categories=dns
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Primary",type=integer,JSONPath=`.spec.primary.replicas`
// +kubebuilder:printcolumn:name="Secondary",type=integer,JSONPath=`.spec.secondary.replicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || (size(self.metadata.name) <= 39 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",message="metadata.name must be at most 39 lower-case letters, digits and \"-\", begin with a letter and not end with \"-\": the names of instances, Services and pods are made from it"
type Bind9GlobalCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the cluster to run.
	Spec GlobalClusterSpec `json:"spec"`

	// Status is what the controller observed last.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status Bind9ClusterStatus `json:"status,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *Bind9GlobalCluster) UnmarshalJSON(data []byte) error {
	type plain Bind9GlobalCluster
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// Bind9GlobalClusterList is a list of Bind9GlobalCluster objects.
//
// +kubebuilder:object:root=true
type Bind9GlobalClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Bind9GlobalCluster `json:"items"`
}

// ClusterBind9Provider is a cluster of BIND servers that zones of every namespace may use by their clusterRef.
// Bind9GlobalCluster is the same kind under another name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName={cb9p,cb9ps},categories=dns
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Primary",type=integer,JSONPath=`.spec.primary.replicas`
// +kubebuilder:printcolumn:name="Secondary",type=integer,JSONPath=`.spec.secondary.replicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || (size(self.metadata.name) <= 39 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",message="metadata.name must be at most 39 lower-case letters, digits and \"-\", begin with a letter and not end with \"-\": the names of instances, Services and pods are made from it"
type ClusterBind9Provider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the cluster to run.
	Spec GlobalClusterSpec `json:"spec"`

	// Status is what the controller observed last.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status Bind9ClusterStatus `json:"status,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *ClusterBind9Provider) UnmarshalJSON(data []byte) error {
	type plain ClusterBind9Provider
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// ClusterBind9ProviderList is a list of ClusterBind9Provider objects.
//
// +kubebuilder:object:root=true
type ClusterBind9ProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterBind9Provider `json:"items"`
}

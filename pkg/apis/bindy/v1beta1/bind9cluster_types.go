package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

// Bind9Cluster is a set of primaries and secondaries in one namespace. They are created as Bind9Instances named
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
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || (size(self.metadata.name) <= 39 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",message="metadata.name must be at most 39 lower-case letters, digits and \"-\", begin with a letter and not end with \"-\": the names of instances, Services and pods are made from it"
type Bind9Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the cluster to run.
	Spec Bind9ClusterSpec `json:"spec"`

	// Status is what the controller observed last.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status Bind9ClusterStatus `json:"status,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *Bind9Cluster) UnmarshalJSON(data []byte) error {
	type plain Bind9Cluster
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// Bind9ClusterSpec is the desired cluster. Namespaced and cluster-scoped clusters share it.
type Bind9ClusterSpec struct {
	// Version of BIND.
	//
	// +optional
	// +kubebuilder:default="9.20"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_.-]*$')",message="spec.version must be a release of BIND such as 9.20"
	Version string `json:"version,omitempty"`
	// Primary configures the primaries to create. If it is absent, none are created. Instances that you create yourself
	// can belong to the cluster as well.
	//
	// +optional
	Primary *RoleConfig `json:"primary,omitempty"`
	// Secondary configures the secondaries to create. If it is absent, none are created.
	//
	// +optional
	Secondary *RoleConfig `json:"secondary,omitempty"`
	// Image is the BIND image to run.
	//
	// +optional
	Image *ImageConfig `json:"image,omitempty"`
	// ConfigMapRefs replace generated configuration files.
	//
	// +optional
	ConfigMapRefs *ConfigMapRefs `json:"configMapRefs,omitempty"`
	// Global holds options of named for every instance.
	//
	// +optional
	Global *Bind9Config `json:"global,omitempty"`
	// RNDCSecretRefs names Secrets with keys for transfers. It has no effect, because the controller creates the transfer
	// key. Use allowTransfer to let others transfer zones.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	RNDCSecretRefs []RNDCSecretRef `json:"rndcSecretRefs,omitempty"`
	// ACLs defines named address match lists. Lists such as allowQuery refer to them by name.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[A-Za-z0-9_.-]{1,63}$'))",message="the names in spec.acls must be 1 to 63 letters, digits, \"_\", \".\" and \"-\"",messageExpression=`'the names in spec.acls must be 1 to 63 letters, digits, "_", "." and "-": not ' + self.filter(k, !k.matches('^[A-Za-z0-9_.-]{1,63}$'))[0]`
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

	ServerConfig `json:",inline"`
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
	// Labels are added to the instances. A DNSZone's bind9InstancesFrom can select instances by them.
	//
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// AllowTransfer lists who may transfer zones from servers of the role. It replaces global.allowTransfer.
	//
	// +optional
	AllowTransfer AddressMatchList `json:"allowTransfer,omitempty"`
	// RNDCKey configures the rndc and TSIG keys.
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

	ServerConfig `json:",inline"`
}

// Bind9ClusterStatus is what the controller observed about a cluster.
type Bind9ClusterStatus struct {
	// Conditions of the cluster. Ready is True when all instances are ready. A Bind9Cluster also has one condition
	// Bind9Instance-<i> for each instance.
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

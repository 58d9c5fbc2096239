package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ZoneGrantSpec says which namespaces may declare zones of which names on servers of other namespaces.
type ZoneGrantSpec struct {
	// Suffixes are the DNS names at and below which the namespaces may declare zones, with or without the final dot;
	// "." stands for all names. Of several grants that cover a name, those with the longest suffix decide.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=254
	// +kubebuilder:validation:items:Pattern=`^(\.|([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.?)$`
	Suffixes []string `json:"suffixes"`

	// Namespaces that may declare such zones; "*" stands for all.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	Namespaces []string `json:"namespaces"`

	// Servers to which the grant applies. Without it, the grant applies to all.
	//
	// +optional
	Servers *GrantedServers `json:"servers,omitempty"`

	// Limits are how much the namespaces may have, in place of what the flags of the webhook say. Of several grants that apply to a
	// namespace, those that name it go before those for "*"; among these, the highest limit counts.
	//
	// +optional
	Limits *NamespaceLimits `json:"limits,omitempty"`
}

// NamespaceLimits are how many objects one namespace may have. A limit that is left out is that of other grants or of the webhook.
//
// +kubebuilder:validation:MinProperties=1
type NamespaceLimits struct {
	// Zones are DNSZones.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Zones *int32 `json:"zones,omitempty"`

	// Providers are DNSProviders.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Providers *int32 `json:"providers,omitempty"`

	// Records are records of all kinds, and the endpoints in DNSEndpoints.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Records *int32 `json:"records,omitempty"`
}

// GrantedServers names servers: those of any of the clusters, and those in any of the namespaces.
//
// +kubebuilder:validation:MinProperties=1
type GrantedServers struct {
	// Clusters are names of Bind9GlobalClusters and ClusterBind9Providers.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Clusters []string `json:"clusters,omitempty"`

	// Namespaces of Bind9Instances.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces,omitempty"`
}

// ZoneGrant says which namespaces may declare zones of which names on servers of other namespaces. It belongs to the team
// that runs these servers. Names that no grant covers follow the default: the oldest zone of a name keeps other namespaces
// from declaring zones below it, unless it has an NSRecord there, and public suffixes such as com are refused. On its own
// servers a namespace needs no grant.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=zg,categories=dns
// +kubebuilder:printcolumn:name="Suffixes",type=string,JSONPath=`.spec.suffixes`
// +kubebuilder:printcolumn:name="Namespaces",type=string,JSONPath=`.spec.namespaces`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ZoneGrant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is granted to whom.
	Spec ZoneGrantSpec `json:"spec"`
}

// ZoneGrantList is a list of ZoneGrant objects.
//
// +kubebuilder:object:root=true
type ZoneGrantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ZoneGrant `json:"items"`
}

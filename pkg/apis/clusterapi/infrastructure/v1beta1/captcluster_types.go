package v1beta1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bindyv1beta1 "github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// CAPTCluster reports whether the network of a Cluster is there and whether the name of its API server is live. A
// WorkspaceTemplateApply makes the network.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1beta1","cluster.x-k8s.io/v1beta2=v1beta1"}
// +kubebuilder:printcolumn:name="VPC-ID",type=string,JSONPath=`.status.vpcId`
// +kubebuilder:printcolumn:name="READY",type=boolean,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="ENDPOINT",type=string,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type CAPTCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is declared.
	//
	// +optional
	Spec CAPTClusterSpec `json:"spec,omitempty"`

	// Status is what the controller observed last.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status CAPTClusterStatus `json:"status,omitempty"`
}

// CAPTClusterSpec is what is declared.
type CAPTClusterSpec struct {
	// ControlPlaneEndpoint is where the API server is reached. If it has no host, that of the Cluster is used.
	//
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// VPCWorkspaceName is the name of the WorkspaceTemplateApply of this namespace that makes the network. Default: the name of this
	// object and "-vpc".
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	VPCWorkspaceName string `json:"vpcWorkspaceName,omitempty"`

	// FailureDomains are where machines can be placed. The controller copies them to the status.
	//
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	FailureDomains []FailureDomain `json:"failureDomains,omitempty"`
}

// APIEndpoint is where an API server is reached.
type APIEndpoint struct {
	// Host is an IP address or a host name.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Host string `json:"host,omitempty"`
	// Port is a TCP port.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`
}

// FailureDomain is a part of the infrastructure that can fail by itself, for example an availability zone.
type FailureDomain struct {
	// Name of the failure domain.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// ControlPlane is true if machines of the control plane may be placed there.
	//
	// +optional
	ControlPlane *bool `json:"controlPlane,omitempty"`
	// Attributes for whoever places machines.
	//
	// +optional
	Attributes map[string]string `json:"attributes,omitempty"`
}

// CAPTClusterStatus is what the controller observed last.
type CAPTClusterStatus struct {
	bindyv1beta1.LifecycleStatus `json:",inline"`

	// ObservedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Initialization is for the contract v1beta2 of Cluster API.
	//
	// +optional
	Initialization *CAPTClusterInitialization `json:"initialization,omitempty"`

	// VPCWorkspaceName is the name of the WorkspaceTemplateApply that makes the network.
	//
	// +optional
	VPCWorkspaceName string `json:"vpcWorkspaceName,omitempty"`
	// VPCID is the identifier of the network, from the workspace's connection Secret.
	//
	// +optional
	VPCID string `json:"vpcId,omitempty"`
	// Endpoint is the host and port of the API server that are used.
	//
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// FailureDomains are those of the spec, in the form that Cluster API expects: by name under contract v1beta1, a list under
	// v1beta2.
	//
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	FailureDomains *apiextensionsv1.JSON `json:"failureDomains,omitempty"`

	// Conditions. VPCReady: the network is there and its ID is known. EndpointPropagated, if a name is to be published: every
	// server answers with it. Ready: the summary.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CAPTClusterInitialization is what happens once.
type CAPTClusterInitialization struct {
	// Provisioned is true from when the object is ready for the first time.
	//
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// CAPTClusterList is a list of CAPTCluster objects.
//
// +kubebuilder:object:root=true
type CAPTClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []CAPTCluster `json:"items"`
}

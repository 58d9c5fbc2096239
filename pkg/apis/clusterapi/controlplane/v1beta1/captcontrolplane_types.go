package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bindyv1beta1 "github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	infrastructurev1beta1 "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/infrastructure/v1beta1"
)

// CAPTControlPlane reports whether the control plane of a Cluster is there and whether the name of its API server is live. A
// WorkspaceTemplateApply makes the control plane.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1beta1","cluster.x-k8s.io/v1beta2=v1beta1"}
// +kubebuilder:printcolumn:name="READY",type=boolean,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="PHASE",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="VERSION",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="ENDPOINT",type=string,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type CAPTControlPlane struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is declared.
	//
	// +optional
	Spec CAPTControlPlaneSpec `json:"spec,omitempty"`

	// Status is what the controller observed last.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status CAPTControlPlaneStatus `json:"status,omitempty"`
}

// CAPTControlPlaneSpec is what is declared.
type CAPTControlPlaneSpec struct {
	// Version of Kubernetes, for example 1.31.
	//
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Version string `json:"version,omitempty"`

	// ControlPlaneEndpoint is where the API server is reached. If it has no host, that of the Cluster is used.
	//
	// +optional
	ControlPlaneEndpoint infrastructurev1beta1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// WorkspaceName is the name of the WorkspaceTemplateApply of this namespace that makes the control plane. Default: the name of
	// this object and "-control-plane".
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	WorkspaceName string `json:"workspaceName,omitempty"`
}

// CAPTControlPlaneStatus is what the controller observed last.
type CAPTControlPlaneStatus struct {
	bindyv1beta1.LifecycleStatus `json:",inline"`

	// ObservedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Initialized is true from when this object was ready for the first time: network, workspace and endpoint were there, and the name
	// live if one is to be published. Nobody connects to the API server.
	//
	// +optional
	Initialized bool `json:"initialized"`
	// Initialization is for the contract v1beta2 of Cluster API.
	//
	// +optional
	Initialization *CAPTControlPlaneInitialization `json:"initialization,omitempty"`
	// ExternalManagedControlPlane is always true: no Machine runs the control plane.
	//
	// +optional
	ExternalManagedControlPlane *bool `json:"externalManagedControlPlane,omitempty"`

	// Version of Kubernetes, as the spec has it, once the workspace is ready.
	//
	// +optional
	Version string `json:"version,omitempty"`
	// Endpoint is the host and port of the API server that are used.
	//
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// WorkspaceTemplateStatus is the state of the workspace that makes the control plane.
	//
	// +optional
	WorkspaceTemplateStatus *WorkspaceTemplateStatus `json:"workspaceTemplateStatus,omitempty"`

	// Conditions. Creating, Failed: the phase. Initialized: as in status.initialized. EndpointPropagated, if a name is to be
	// published: every server answers with it. WorkspaceReady: the control plane is there. VPCReady, if the infrastructure of the
	// Cluster is a CAPTCluster: so is its network. Ready: the summary. Available: the same, for the contract v1beta2.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CAPTControlPlaneInitialization is what happens once.
type CAPTControlPlaneInitialization struct {
	// ControlPlaneInitialized is the same as status.initialized.
	//
	// +optional
	ControlPlaneInitialized *bool `json:"controlPlaneInitialized,omitempty"`
}

// WorkspaceTemplateStatus is the state of a WorkspaceTemplateApply.
type WorkspaceTemplateStatus struct {
	// Ready is true when the workspace is Synced and Ready.
	//
	// +optional
	Ready bool `json:"ready"`
	// State is Missing, Pending, Failed or Ready.
	//
	// +optional
	State string `json:"state,omitempty"`
	// LastAppliedRevision is the metadata.generation of the workspace that was applied last.
	//
	// +optional
	LastAppliedRevision string `json:"lastAppliedRevision,omitempty"`
	// LastFailedRevision is the metadata.generation of the workspace that could not be applied last.
	//
	// +optional
	LastFailedRevision string `json:"lastFailedRevision,omitempty"`
	// LastFailureMessage is why it could not be.
	//
	// +optional
	LastFailureMessage string `json:"lastFailureMessage,omitempty"`
	// Outputs of the workspace that its status shows; at most 64. None is read from a Secret.
	//
	// +optional
	Outputs map[string]string `json:"outputs,omitempty"`
}

// CAPTControlPlaneList is a list of CAPTControlPlane objects.
//
// +kubebuilder:object:root=true
type CAPTControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []CAPTControlPlane `json:"items"`
}

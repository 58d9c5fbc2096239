package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DNSEndpoint hands over DNS names to publish.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type DNSEndpoint struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what to publish.
	// +optional
	Spec DNSEndpointSpec `json:"spec,omitempty"`
	// Status is what the controller has observed.
	// +optional
	Status DNSEndpointStatus `json:"status,omitempty"`
}

// DNSEndpointSpec is what to publish.
type DNSEndpointSpec struct {
	// Endpoints to publish.
	// +optional
	// +listType=atomic
	Endpoints []*Endpoint `json:"endpoints,omitempty"`
}

// Endpoint is one RRset.
type Endpoint struct {
	// DNSName is the full owner name.
	// +optional
	DNSName string `json:"dnsName,omitempty"`
	// Targets are the values of the RRset.
	// +optional
	// +listType=atomic
	Targets []string `json:"targets,omitempty"`
	// RecordType is the DNS type.
	// +optional
	RecordType string `json:"recordType,omitempty"`
	// RecordTTL in seconds.
	// +optional
	RecordTTL int64 `json:"recordTTL,omitempty"`
	// SetIdentifier tells apart several endpoints of one name and type.
	// +optional
	SetIdentifier string `json:"setIdentifier,omitempty"`
	// Labels are the source's own notes.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// ProviderSpecific settings.
	// +optional
	// +listType=atomic
	ProviderSpecific []ProviderSpecificProperty `json:"providerSpecific,omitempty"`
}

// ProviderSpecificProperty is a setting that only some DNS providers know.
type ProviderSpecificProperty struct {
	// Name of the setting.
	// +optional
	Name string `json:"name,omitempty"`
	// Value of the setting.
	// +optional
	Value string `json:"value,omitempty"`
}

// DNSEndpointStatus is what the controller has observed.
type DNSEndpointStatus struct {
	// ObservedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions of the endpoints.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DNSEndpointList is a list of DNSEndpoint objects.
//
// +kubebuilder:object:root=true
type DNSEndpointList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DNSEndpoint `json:"items"`
}

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ARecord publishes A records.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type ARecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec ARecordSpec `json:"spec"`
	// Status is what the controller has observed.
	// +optional
	Status RecordStatus `json:"status,omitempty"`
}

// ARecordSpec is the desired A record.
type ARecordSpec struct {
	RecordCommon `json:",inline"`

	// IPv4Addresses are the addresses to publish.
	// +optional
	IPv4Addresses []string `json:"ipv4Addresses,omitempty"`

	// IPv4Address is the older form of ipv4Addresses.
	// +optional
	IPv4Address string `json:"ipv4Address,omitempty"`
}

// ARecordList is a list of ARecord objects.
//
// +kubebuilder:object:root=true
type ARecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ARecord `json:"items"`
}

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AAAARecord publishes AAAA records.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type AAAARecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec AAAARecordSpec `json:"spec"`
	// Status is what the controller has observed.
	// +optional
	Status RecordStatus `json:"status,omitempty"`
}

// AAAARecordSpec is the desired AAAA record.
type AAAARecordSpec struct {
	RecordCommon `json:",inline"`

	// IPv6Addresses are the addresses to publish.
	// +optional
	IPv6Addresses []string `json:"ipv6Addresses,omitempty"`

	// IPv6Address is the older form of ipv6Addresses.
	// +optional
	IPv6Address string `json:"ipv6Address,omitempty"`
}

// AAAARecordList is a list of AAAARecord objects.
//
// +kubebuilder:object:root=true
type AAAARecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AAAARecord `json:"items"`
}

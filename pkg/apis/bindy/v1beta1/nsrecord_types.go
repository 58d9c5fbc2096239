package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NSRecord publishes NS records.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type NSRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec NSRecordSpec `json:"spec"`
	// Status is what the controller has observed.
	// +optional
	Status RecordStatus `json:"status,omitempty"`
}

// NSRecordSpec is the desired NS record.
type NSRecordSpec struct {
	RecordCommon `json:",inline"`

	// Nameserver is the host name of the server.
	Nameserver string `json:"nameserver"`
}

// NSRecordList is a list of NSRecord objects.
//
// +kubebuilder:object:root=true
type NSRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NSRecord `json:"items"`
}

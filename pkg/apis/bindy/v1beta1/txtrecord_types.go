package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TXTRecord publishes TXT records.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type TXTRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec TXTRecordSpec `json:"spec"`
	// Status is what the controller has observed.
	// +optional
	Status RecordStatus `json:"status,omitempty"`
}

// TXTRecordSpec is the desired TXT record.
type TXTRecordSpec struct {
	RecordCommon `json:",inline"`

	// Text is the record's strings.
	Text []string `json:"text"`
}

// TXTRecordList is a list of TXTRecord objects.
//
// +kubebuilder:object:root=true
type TXTRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []TXTRecord `json:"items"`
}

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CAARecord publishes CAA records.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type CAARecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec CAARecordSpec `json:"spec"`
	// Status is what the controller has observed.
	// +optional
	Status RecordStatus `json:"status,omitempty"`
}

// CAARecordSpec is the desired CAA record.
type CAARecordSpec struct {
	RecordCommon `json:",inline"`

	// Flags of the property.
	Flags int32 `json:"flags"`

	// Tag is the name of the property.
	Tag string `json:"tag"`

	// Value of the property.
	Value string `json:"value"`
}

// CAARecordList is a list of CAARecord objects.
//
// +kubebuilder:object:root=true
type CAARecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []CAARecord `json:"items"`
}

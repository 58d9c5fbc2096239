package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CNAMERecord publishes CNAME records.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type CNAMERecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec CNAMERecordSpec `json:"spec"`
	// Status is what the controller has observed.
	// +optional
	Status RecordStatus `json:"status,omitempty"`
}

// CNAMERecordSpec is the desired CNAME record.
type CNAMERecordSpec struct {
	RecordCommon `json:",inline"`

	// Target is the canonical name.
	Target string `json:"target"`
}

// CNAMERecordList is a list of CNAMERecord objects.
//
// +kubebuilder:object:root=true
type CNAMERecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []CNAMERecord `json:"items"`
}

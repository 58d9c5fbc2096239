package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SRVRecord publishes SRV records.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type SRVRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec SRVRecordSpec `json:"spec"`
	// Status is what the controller has observed.
	// +optional
	Status RecordStatus `json:"status,omitempty"`
}

// SRVRecordSpec is the desired SRV record.
type SRVRecordSpec struct {
	RecordCommon `json:",inline"`

	// Priority of the target.
	Priority int32 `json:"priority"`

	// Weight of the target.
	Weight int32 `json:"weight"`

	// Port of the service.
	Port int32 `json:"port"`

	// Target is the host that provides the service.
	Target string `json:"target"`
}

// SRVRecordList is a list of SRVRecord objects.
//
// +kubebuilder:object:root=true
type SRVRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SRVRecord `json:"items"`
}

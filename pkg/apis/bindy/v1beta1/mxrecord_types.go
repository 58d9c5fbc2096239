package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MXRecord publishes MX records.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type MXRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec MXRecordSpec `json:"spec"`
	// Status is what the controller has observed.
	// +optional
	Status RecordStatus `json:"status,omitempty"`
}

// MXRecordSpec is the desired MX record.
type MXRecordSpec struct {
	RecordCommon `json:",inline"`

	// Priority of the mail server.
	Priority int32 `json:"priority"`

	// MailServer is the host name of the mail server.
	MailServer string `json:"mailServer"`
}

// MXRecordList is a list of MXRecord objects.
//
// +kubebuilder:object:root=true
type MXRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MXRecord `json:"items"`
}

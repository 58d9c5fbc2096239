package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

// CAARecord restricts which certificate authorities may issue certificates for a name (RFC 8659).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=caa,categories=dns
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.zone`
// +kubebuilder:printcolumn:name="Tag",type=string,JSONPath=`.spec.tag`
// +kubebuilder:printcolumn:name="Value",type=string,JSONPath=`.spec.value`
// +kubebuilder:printcolumn:name="TTL",type=integer,JSONPath=`.spec.ttl`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CAARecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec CAARecordSpec `json:"spec"`

	// Status is what the controller observed last. The record's SyncStatus shows what the servers answer now.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status RecordStatus `json:"status,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *CAARecord) UnmarshalJSON(data []byte) error {
	type plain CAARecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// CAARecordSpec is the desired CAA record.
//
// +kubebuilder:validation:XValidation:rule="self.tag.lowerAscii() != 'iodef' || self.value.matches('^(mailto:|https?://).+')",message="spec.value must be a URL starting with mailto:, http:// or https:// when spec.tag is iodef, for example \"mailto:security@example.com\" (RFC 8659, section 4.4)"
type CAARecordSpec struct {
	RecordCommon `json:",inline"`

	// Flags, 0 to 255. 128 marks the property as critical: an authority that does not understand it must not issue. Use 0
	// otherwise.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=255
	Flags int32 `json:"flags"`

	// Tag is the property: "issue", "issuewild", "iodef" or another of 1 to 15 letters and digits.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]{1,15}$')",message="spec.tag must be 1 to 15 letters and digits (RFC 8659, section 4.1), for example issue, issuewild or iodef"
	Tag string `json:"tag"`

	// Value of the property. For issue and issuewild it is the authority's domain name, such as "letsencrypt.org", or ";"
	// for none. For iodef it is the URL for reports.
	//
	// +kubebuilder:validation:MaxLength=1024
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

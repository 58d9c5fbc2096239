package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

// TXTRecord publishes text for a name (RFC 1035, section 3.3.14), such as an SPF, DKIM or DMARC policy.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=txt,categories=dns
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.zone`
// +kubebuilder:printcolumn:name="TTL",type=integer,JSONPath=`.spec.ttl`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TXTRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec TXTRecordSpec `json:"spec"`

	// Status is what the controller observed last. The record's SyncStatus shows what the servers answer now.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status RecordStatus `json:"status,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *TXTRecord) UnmarshalJSON(data []byte) error {
	type plain TXTRecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// TXTRecordSpec is the desired TXT record.
type TXTRecordSpec struct {
	RecordCommon `json:",inline"`

	// Text holds the character strings of one TXT record, in order. Readers concatenate them without a separator. A string
	// of more than 255 bytes is split automatically.
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self.map(s, size(s)).sum() <= 60000",message="spec.text has more than 60000 characters, more than a DNS message can carry: shorten it, or spread it over several names"
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

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

// MXRecord names a mail server for a name (RFC 5321, section 5).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mx,categories=dns
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.zone`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Mail Server",type=string,JSONPath=`.spec.mailServer`
// +kubebuilder:printcolumn:name="TTL",type=integer,JSONPath=`.spec.ttl`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MXRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec MXRecordSpec `json:"spec"`

	// Status is what the controller observed last. The record's SyncStatus shows what the servers answer now.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status RecordStatus `json:"status,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *MXRecord) UnmarshalJSON(data []byte) error {
	type plain MXRecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// MXRecordSpec is the desired MX record.
//
// +kubebuilder:validation:XValidation:rule="self.mailServer != '.' || self.priority == 0",message="spec.priority must be 0 when spec.mailServer is \".\", which says that the name takes no mail (RFC 7505)"
type MXRecordSpec struct {
	RecordCommon `json:",inline"`

	// Priority of the server, 0 to 65535. Senders try the lowest first.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Priority int32 `json:"priority"`

	// MailServer is the host name of the mail server, not an address: absolute with a trailing dot, as in
	// "mail.example.com.", or relative to the zone without one, as in "mail". A single ".", with priority 0, declares
	// that the name accepts no mail (RFC 7505).
	//
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:XValidation:rule="!isIP(self) && !(self.endsWith('.') && isIP(self.substring(0, size(self) - 1)))",message="spec.mailServer must be a host name, not an IP address: publish the address with an ARecord or AAAARecord and name that here"
	// +kubebuilder:validation:XValidation:rule="isIP(self) || self == '@' || self == '.' || self.matches('^[A-Za-z0-9_/-]{1,63}([.][A-Za-z0-9_/-]{1,63})*[.]?$')",message="spec.mailServer must be a host name such as mail.example.com.: labels of 1 to 63 letters, digits, \"-\", \"_\" or \"/\" joined by single dots, or \".\" alone for none"
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

// SRVRecord publishes the host and port of a service (RFC 2782). Its name has the form "_service._protocol".
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=srv,categories=dns
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.zone`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.target`
// +kubebuilder:printcolumn:name="Port",type=integer,JSONPath=`.spec.port`
// +kubebuilder:printcolumn:name="TTL",type=integer,JSONPath=`.spec.ttl`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SRVRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec SRVRecordSpec `json:"spec"`

	// Status is what the controller observed last. The record's SyncStatus shows what the servers answer now.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status RecordStatus `json:"status,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *SRVRecord) UnmarshalJSON(data []byte) error {
	type plain SRVRecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// SRVRecordSpec is the desired SRV record.
type SRVRecordSpec struct {
	RecordCommon `json:",inline"`

	// Priority of the target, 0 to 65535. Clients try the lowest first.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Priority int32 `json:"priority"`

	// Weight distributes clients among targets of the same priority, in proportion, 0 to 65535.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Weight int32 `json:"weight"`

	// Port of the service on the target, 0 to 65535.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// Target is the name of the host that provides the service, not an address: absolute with a trailing dot, as in
	// "sip1.example.com.", or relative to the zone without one, as in "sip1". A single "." declares that the service is
	// not available.
	//
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:XValidation:rule="!isIP(self) && !(self.endsWith('.') && isIP(self.substring(0, size(self) - 1)))",message="spec.target must be a host name, not an IP address: publish the address with an ARecord or AAAARecord and name that here"
	// +kubebuilder:validation:XValidation:rule="isIP(self) || self == '@' || self == '.' || self.matches('^[A-Za-z0-9_/-]{1,63}([.][A-Za-z0-9_/-]{1,63})*[.]?$')",message="spec.target must be a host name such as sip1.example.com.: labels of 1 to 63 letters, digits, \"-\", \"_\" or \"/\" joined by single dots, or \".\" alone for none"
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

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

// CNAMERecord makes a name an alias of another (RFC 1034, section 3.6.2).
//
// A name with a CNAME cannot have other records. The older object wins, and the younger one reports the conflict.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cname,categories=dns
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.zone`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.target`
// +kubebuilder:printcolumn:name="TTL",type=integer,JSONPath=`.spec.ttl`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CNAMERecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec CNAMERecordSpec `json:"spec"`

	// Status is what the controller observed last. The record's SyncStatus shows what the servers answer now.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status RecordStatus `json:"status,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *CNAMERecord) UnmarshalJSON(data []byte) error {
	type plain CNAMERecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// CNAMERecordSpec is the desired CNAME record.
//
// +kubebuilder:validation:XValidation:rule="self.name != '@'",message="spec.name: a CNAME cannot stand at the zone itself, where SOA and NS records are (RFC 1034, section 3.6.2); publish addresses there with an ARecord or AAAARecord"
type CNAMERecordSpec struct {
	RecordCommon `json:",inline"`

	// Target is the canonical name: absolute with a trailing dot, as in "www.example.com."; relative to the zone without
	// one, as in "www"; or "@" for the zone apex.
	//
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:XValidation:rule="!isIP(self) && !(self.endsWith('.') && isIP(self.substring(0, size(self) - 1)))",message="spec.target must be a host name, not an IP address: publish the address with an ARecord or AAAARecord and name that here"
	// +kubebuilder:validation:XValidation:rule="isIP(self) || self == '@' || self.matches('^[A-Za-z0-9_/-]{1,63}([.][A-Za-z0-9_/-]{1,63})*[.]?$')",message="spec.target must be a host name such as www.example.com.: labels of 1 to 63 letters, digits, \"-\", \"_\" or \"/\" joined by single dots"
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

// NSRecord delegates a name to a name server (RFC 1035, section 3.3.11).
//
// With name "@" it adds a name server to the zone itself, in addition to the DNSZone's nameServers.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=dns
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.zone`
// +kubebuilder:printcolumn:name="Nameserver",type=string,JSONPath=`.spec.nameserver`
// +kubebuilder:printcolumn:name="TTL",type=integer,JSONPath=`.spec.ttl`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NSRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec NSRecordSpec `json:"spec"`

	// Status is what the controller observed last. The record's SyncStatus shows what the servers answer now.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status RecordStatus `json:"status,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *NSRecord) UnmarshalJSON(data []byte) error {
	type plain NSRecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// NSRecordSpec is the desired NS record.
type NSRecordSpec struct {
	RecordCommon `json:",inline"`

	// Nameserver is the host name of the server, not an address: absolute with a trailing dot, as in "ns1.example.net.",
	// or relative to the zone without one, as in "ns1".
	//
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:XValidation:rule="!isIP(self) && !(self.endsWith('.') && isIP(self.substring(0, size(self) - 1)))",message="spec.nameserver must be a host name, not an IP address: publish the address with an ARecord or AAAARecord and name that here"
	// +kubebuilder:validation:XValidation:rule="isIP(self) || self == '@' || self.matches('^[A-Za-z0-9_/-]{1,63}([.][A-Za-z0-9_/-]{1,63})*[.]?$')",message="spec.nameserver must be a host name such as ns1.example.net.: labels of 1 to 63 letters, digits, \"-\", \"_\" or \"/\" joined by single dots"
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

// PTRRecord names the host of an address in a reverse zone (RFC 1035, section 3.5).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ptr,categories=dns
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.zone`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.target`
// +kubebuilder:printcolumn:name="TTL",type=integer,JSONPath=`.spec.ttl`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PTRRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec PTRRecordSpec `json:"spec"`

	// Status is what the controller observed last. The record's SyncStatus shows what the servers answer now.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status RecordStatus `json:"status,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *PTRRecord) UnmarshalJSON(data []byte) error {
	type plain PTRRecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// PTRRecordSpec is the desired PTR record. Its name is the rest of the reversed address: "10" in zone 2.0.192.in-addr.arpa is
// 192.0.2.10.
type PTRRecordSpec struct {
	RecordCommon `json:",inline"`

	// Target is the host: absolute with a trailing dot, as in "www.example.com."; relative to the zone without one. It may be
	// a service instance, whose first label may hold blanks and UTF-8: "Office Printer._ipp._tcp" (RFC 6763, section 4.1).
	// Upper and lower case is kept.
	//
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:XValidation:rule="!isIP(self) && !(self.endsWith('.') && isIP(self.substring(0, size(self) - 1)))",message="spec.target must be a host name, not an IP address: the address is in spec.name and the name of the zone, such as \"10\" in 2.0.192.in-addr.arpa for 192.0.2.10"
	// +kubebuilder:validation:XValidation:rule="isIP(self) || self == '@' || self.contains('\\\\') || self.matches('^[^.]{1,63}([.][^.]+)*[.]_[A-Za-z0-9-]{1,62}[.]_([Tt][Cc][Pp]|[Uu][Dd][Pp])([.][A-Za-z0-9_/-]{1,63})*[.]?$') || self.matches('^[A-Za-z0-9_/-]{1,63}([.][A-Za-z0-9_/-]{1,63})*[.]?$')",message="spec.target must be a host name such as www.example.com.: labels of 1 to 63 letters, digits, \"-\", \"_\" or \"/\" joined by single dots"
	Target string `json:"target"`
}

// PTRRecordList is a list of PTRRecord objects.
//
// +kubebuilder:object:root=true
type PTRRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PTRRecord `json:"items"`
}

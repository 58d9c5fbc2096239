package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

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

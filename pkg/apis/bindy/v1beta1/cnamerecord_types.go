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

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

// DNSRecord publishes records of any type: those without a kind of their own, such as HTTPS, SVCB, TLSA, SSHFP, DS, DNAME,
// NAPTR, URI, LOC, OPENPGPKEY, SMIMEA and CERT, types without a name, and those of the other kinds as well. All values of one
// name and type unite, whatever the kind of the objects.
//
// Servers maintain SOA, DNSKEY, CDS, CDNSKEY, RRSIG, NSEC, NSEC3 and NSEC3PARAM themselves; these cannot be declared.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rr,categories=dns
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.zone`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Data",type=string,JSONPath=`.spec.data`
// +kubebuilder:printcolumn:name="TTL",type=integer,JSONPath=`.spec.ttl`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DNSRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the records to publish.
	Spec DNSRecordSpec `json:"spec"`

	// Status is what the controller observed last. The record's SyncStatus shows what the servers answer now.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status RecordStatus `json:"status,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *DNSRecord) UnmarshalJSON(data []byte) error {
	type plain DNSRecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// DNSRecordSpec is the desired records of one name and type.
type DNSRecordSpec struct {
	RecordCommon `json:",inline"`

	// Type is the mnemonic of the type in the IANA registry, such as HTTPS, or TYPE and its number, such as TYPE65280 (RFC
	// 3597, section 5).
	//
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9-]*$')",message="spec.type must be the name of a record type such as HTTPS, or TYPE and its number such as TYPE65280 (RFC 3597, section 5)"
	Type string `json:"type"`

	// Data holds one entry for each record, as the type's data stands in a zone file, such as "1 . alpn=h3,h2" for HTTPS. Host
	// names with a trailing dot are absolute; without one they are relative to the zone. All types take the form of RFC 3597,
	// section 5: "\# 4 0a000001".
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=131072
	Data []string `json:"data"`
}

// DNSRecordList is a list of DNSRecord objects.
//
// +kubebuilder:object:root=true
type DNSRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DNSRecord `json:"items"`
}

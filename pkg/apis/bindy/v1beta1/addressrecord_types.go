package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

// ARecord publishes IPv4 addresses for a name.
//
// It belongs to a DNSZone of its namespace if one of the zone's recordsFrom selectors matches its labels.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=a,categories=dns
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.zone`
// +kubebuilder:printcolumn:name="Addresses",type=string,JSONPath=`.status.addresses`
// +kubebuilder:printcolumn:name="TTL",type=integer,JSONPath=`.spec.ttl`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ARecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec ARecordSpec `json:"spec"`

	// Status is what the controller observed last. The record's SyncStatus shows what the servers answer now.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status RecordStatus `json:"status,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *ARecord) UnmarshalJSON(data []byte) error {
	type plain ARecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// ARecordSpec is the desired A record.
//
// +kubebuilder:validation:XValidation:rule="(has(self.ipv4Addresses) && size(self.ipv4Addresses) > 0) || has(self.ipv4Address)",message="spec.ipv4Addresses is required: list at least one IPv4 address, for example [\"192.0.2.1\"]"
type ARecordSpec struct {
	RecordCommon `json:",inline"`

	// IPv4Addresses are the addresses to publish, one A record each (RFC 1035, section 3.4.1). Addresses that several
	// objects declare for one name are published together, as many as the zone's servers take (maxRecordsPerType).
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4000
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self) && ip(self).family() == 4",message="spec.ipv4Addresses takes IPv4 addresses such as 192.0.2.1; use an AAAARecord for IPv6 addresses"
	IPv4Addresses []string `json:"ipv4Addresses,omitempty"`

	// IPv4Address is the older form of ipv4Addresses, with a single address. If both are set, all addresses are
	// published.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self) && ip(self).family() == 4",message="spec.ipv4Address takes IPv4 addresses such as 192.0.2.1; use an AAAARecord for IPv6 addresses"
	IPv4Address string `json:"ipv4Address,omitempty"`
}

// ARecordList is a list of ARecord objects.
//
// +kubebuilder:object:root=true
type ARecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ARecord `json:"items"`
}

// AAAARecord publishes IPv6 addresses for a name.
//
// It belongs to a DNSZone of its namespace if one of the zone's recordsFrom selectors matches its labels.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=aaaa,categories=dns
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.status.zone`
// +kubebuilder:printcolumn:name="Addresses",type=string,JSONPath=`.status.addresses`
// +kubebuilder:printcolumn:name="TTL",type=integer,JSONPath=`.spec.ttl`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AAAARecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record to publish.
	Spec AAAARecordSpec `json:"spec"`

	// Status is what the controller observed last. The record's SyncStatus shows what the servers answer now.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status RecordStatus `json:"status,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *AAAARecord) UnmarshalJSON(data []byte) error {
	type plain AAAARecord
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// AAAARecordSpec is the desired AAAA record.
//
// +kubebuilder:validation:XValidation:rule="(has(self.ipv6Addresses) && size(self.ipv6Addresses) > 0) || has(self.ipv6Address)",message="spec.ipv6Addresses is required: list at least one IPv6 address, for example [\"2001:db8::1\"]"
type AAAARecordSpec struct {
	RecordCommon `json:",inline"`

	// IPv6Addresses are the addresses to publish, one AAAA record each (RFC 3596). Addresses that several objects
	// declare for one name are published together, as many as the zone's servers take (maxRecordsPerType).
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4000
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self) && ip(self).family() == 6",message="spec.ipv6Addresses takes IPv6 addresses such as 2001:db8::1; use an ARecord for IPv4 addresses"
	IPv6Addresses []string `json:"ipv6Addresses,omitempty"`

	// IPv6Address is the older form of ipv6Addresses, with a single address. If both are set, all addresses are
	// published.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self) && ip(self).family() == 6",message="spec.ipv6Address takes IPv6 addresses such as 2001:db8::1; use an ARecord for IPv4 addresses"
	IPv6Address string `json:"ipv6Address,omitempty"`
}

// AAAARecordList is a list of AAAARecord objects.
//
// +kubebuilder:object:root=true
type AAAARecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AAAARecord `json:"items"`
}

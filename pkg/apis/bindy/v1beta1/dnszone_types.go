package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DNSZone is an authoritative DNS zone.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type DNSZone struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the zone to serve.
	Spec DNSZoneSpec `json:"spec"`
	// Status is what the controller has observed.
	// +optional
	Status DNSZoneStatus `json:"status,omitempty"`
}

// DNSZoneSpec is the desired zone.
type DNSZoneSpec struct {
	// ZoneName is the DNS name of the zone.
	ZoneName string `json:"zoneName"`

	// SOARecord holds the values of the zone's SOA record.
	SOARecord SOARecord `json:"soaRecord"`

	// TTL in seconds of every record of the zone that has none of its own.
	// +optional
	TTL *int64 `json:"ttl,omitempty"`

	// ClusterRef names the cluster that serves the zone.
	// +optional
	ClusterRef string `json:"clusterRef,omitempty"`

	// ClusterProviderRef names a cluster-scoped cluster that serves the zone.
	// +optional
	ClusterProviderRef string `json:"clusterProviderRef,omitempty"`

	// Bind9InstancesFrom selects instances by label.
	// +optional
	// +listType=atomic
	Bind9InstancesFrom []InstanceSource `json:"bind9InstancesFrom,omitempty"`

	// RecordsFrom selects records by label.
	// +optional
	// +listType=atomic
	RecordsFrom []RecordSource `json:"recordsFrom,omitempty"`

	// NameServers are published as NS records at the apex.
	// +optional
	// +listType=atomic
	NameServers []NameServer `json:"nameServers,omitempty"`

	// NameServerIPs maps host names of name servers to IPv4 addresses.
	// +optional
	NameServerIPs map[string]string `json:"nameServerIps,omitempty"`

	// DNSSECPolicy names the dnssec-policy the zone is signed with.
	// +optional
	DNSSECPolicy string `json:"dnssecPolicy,omitempty"`
}

// SOARecord holds the fields of an SOA record (RFC 1035, section 3.3.13).
type SOARecord struct {
	// PrimaryNS is the MNAME.
	PrimaryNS string `json:"primaryNs"`

	// AdminEmail is the RNAME.
	AdminEmail string `json:"adminEmail"`

	// Serial is the least serial the zone starts with.
	// +optional
	Serial int64 `json:"serial,omitempty"`

	// Refresh interval in seconds.
	// +optional
	Refresh int64 `json:"refresh,omitempty"`

	// Retry interval in seconds.
	// +optional
	Retry int64 `json:"retry,omitempty"`

	// Expire interval in seconds.
	// +optional
	Expire int64 `json:"expire,omitempty"`

	// NegativeTTL in seconds.
	// +optional
	NegativeTTL *int64 `json:"negativeTtl,omitempty"`
}

// InstanceSource selects Bind9Instances by label.
type InstanceSource struct {
	// Selector over the labels of Bind9Instances.
	Selector metav1.LabelSelector `json:"selector"`
}

// RecordSource selects records by label.
type RecordSource struct {
	// Selector over the labels of records.
	Selector metav1.LabelSelector `json:"selector"`
}

// NameServer is an authoritative server of a zone.
type NameServer struct {
	// Hostname of the server.
	Hostname string `json:"hostname"`

	// IPv4Address of the server.
	// +optional
	IPv4Address string `json:"ipv4Address,omitempty"`

	// IPv6Address of the server.
	// +optional
	IPv6Address string `json:"ipv6Address,omitempty"`
}

// DNSZoneStatus is what the controller has observed about a zone.
type DNSZoneStatus struct {
	// Conditions of the zone.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Records are the records that are selected by the zone and ready.
	// +optional
	// +listType=atomic
	Records []RecordReference `json:"records,omitempty"`

	// RecordsCount is the number of entries in records.
	// +optional
	RecordsCount int32 `json:"recordsCount,omitempty"`

	// Bind9Instances are the instances of the zone.
	// +optional
	// +listType=atomic
	Bind9Instances []ZoneInstance `json:"bind9Instances,omitempty"`

	// Bind9InstancesCount is the number of entries in bind9Instances.
	// +optional
	Bind9InstancesCount int32 `json:"bind9InstancesCount,omitempty"`

	// Serial is the SOA serial last written to the primaries.
	// +optional
	Serial *int64 `json:"serial,omitempty"`

	// DNSSEC tells how the zone is signed.
	// +optional
	DNSSEC *DNSSECStatus `json:"dnssec,omitempty"`
}

// RecordReference points from a zone to one of its records.
type RecordReference struct {
	// APIVersion of the record.
	APIVersion string `json:"apiVersion"`
	// Kind of the record.
	Kind string `json:"kind"`
	// Name of the record object.
	Name string `json:"name"`
	// Namespace of the record object.
	Namespace string `json:"namespace"`
	// RecordName is the record's spec.name.
	// +optional
	RecordName string `json:"recordName,omitempty"`
	// LastReconciledAt is when the record last reached BIND.
	// +optional
	LastReconciledAt *metav1.Time `json:"lastReconciledAt,omitempty"`
}

// ZoneInstanceStatus tells how far a zone is configured on an instance.
type ZoneInstanceStatus string

// How far a zone is configured on an instance.
const (
	// ZoneClaimed: the zone selects the instance and has not been configured on it yet.
	ZoneClaimed ZoneInstanceStatus = "Claimed"
	// ZoneConfigured: the instance serves the zone.
	ZoneConfigured ZoneInstanceStatus = "Configured"
	// ZoneFailed: configuring the zone on the instance failed; the message tells why.
	ZoneFailed ZoneInstanceStatus = "Failed"
	// ZoneUnclaimed: the zone no longer selects the instance and is yet to be taken off it.
	ZoneUnclaimed ZoneInstanceStatus = "Unclaimed"
)

// ZoneInstance points from a zone to one of its instances.
type ZoneInstance struct {
	// APIVersion of the instance.
	APIVersion string `json:"apiVersion"`
	// Kind of the instance, always Bind9Instance.
	Kind string `json:"kind"`
	// Name of the instance.
	Name string `json:"name"`
	// Namespace of the instance.
	Namespace string `json:"namespace"`
	// Status of the zone on the instance.
	Status ZoneInstanceStatus `json:"status"`
	// LastReconciledAt is when status last changed.
	// +optional
	LastReconciledAt *metav1.Time `json:"lastReconciledAt,omitempty"`
	// Message explains the status.
	// +optional
	Message string `json:"message,omitempty"`
}

// DNSSECStatus tells how a zone is signed.
type DNSSECStatus struct {
	// Signed is true when the servers answer with signatures.
	Signed bool `json:"signed"`
	// DSRecords to publish in the parent zone.
	// +optional
	// +listType=atomic
	DSRecords []string `json:"dsRecords,omitempty"`
	// KeyTag of the key-signing key.
	// +optional
	KeyTag *int64 `json:"keyTag,omitempty"`
	// Algorithm mnemonic of the key-signing key.
	// +optional
	Algorithm string `json:"algorithm,omitempty"`
	// LastKeyRollover is when the keys were last rolled.
	// +optional
	LastKeyRollover *metav1.Time `json:"lastKeyRollover,omitempty"`
	// NextKeyRollover is when the keys are due to be rolled.
	// +optional
	NextKeyRollover *metav1.Time `json:"nextKeyRollover,omitempty"`
}

// DNSZoneList is a list of DNSZone objects.
//
// +kubebuilder:object:root=true
type DNSZoneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DNSZone `json:"items"`
}

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RecordCommon holds the fields that the specs of all record kinds share.
type RecordCommon struct {
	// Name is the owner name of the record, relative to the zone: "www" in zone example.com is www.example.com. "@" is
	// the zone apex. The first label may be "*" (RFC 4592). Service labels such as "_sip._tcp" and deeper names such as
	// "a.b.c" are allowed.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('.')",message="spec.name is relative to the zone and takes no trailing dot: write \"www\" for www.example.com in zone example.com, or \"@\" for the zone itself"
	// +kubebuilder:validation:XValidation:rule="self.endsWith('.') || self == '@' || self.matches('^([*]|[A-Za-z0-9_/-]{1,63})([.][A-Za-z0-9_/-]{1,63})*$')",message="spec.name must be \"@\" for the zone itself, or labels of 1 to 63 letters, digits, \"-\", \"_\" or \"/\" joined by single dots, where only the first may be \"*\""
	Name string `json:"name"`

	// TTL is how long, in seconds, a resolver may cache the record, 0 to 2147483647 (RFC 2181, section 8). If it is
	// absent, the zone's ttl applies, or 3600 if the zone has none. All records of one name and type share one TTL: if
	// objects differ, the smallest applies.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TTL *int64 `json:"ttl,omitempty"`
}

// RecordStatus is what the controller observed about a record. All record kinds share it.
//
// +structType=atomic
type RecordStatus struct {
	// Conditions of the record. Accepted: it is part of its zone's data. Programmed: every primary was queried and
	// answered with it. Ready: both, for the current generation; the reason is ReconcileSucceeded, NotSelected,
	// ZoneNotConfigured, NoPrimaryInstances or ReconcileFailed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Zone is the name of the DNS zone that the record belongs to. Empty while no DNSZone selects it.
	//
	// +optional
	Zone string `json:"zone,omitempty"`

	// ZoneRef refers to the DNSZone that selected the record.
	//
	// +optional
	ZoneRef *ZoneReference `json:"zoneRef,omitempty"`

	// RecordHash is the SHA-256, in hexadecimal, of everything in the record that affects DNS data. It changes if
	// and only if the servers have to be updated.
	//
	// +optional
	RecordHash string `json:"recordHash,omitempty"`

	// LastUpdated is when a change of this record last reached BIND (RFC 3339).
	//
	// +optional
	LastUpdated *metav1.Time `json:"lastUpdated,omitempty"`

	// Addresses are the addresses of an ARecord or AAAARecord, joined by commas; other kinds leave it empty.
	//
	// +optional
	Addresses string `json:"addresses,omitempty"`

	// PublishedName is the full owner name under which the record is published now. After a change of spec.name it holds
	// the old name until that has been removed from DNS.
	//
	// +optional
	PublishedName string `json:"publishedName,omitempty"`
}

// ZoneReference refers from a record or an instance to a zone.
type ZoneReference struct {
	// APIVersion of the zone object.
	APIVersion string `json:"apiVersion"`
	// Kind of the zone object, always DNSZone.
	Kind string `json:"kind"`
	// Name of the zone object.
	Name string `json:"name"`
	// Namespace of the zone object.
	Namespace string `json:"namespace"`
	// ZoneName is the DNS name of the zone.
	ZoneName string `json:"zoneName"`
	// LastReconciledAt is when the zone was last configured here successfully (RFC 3339).
	//
	// +optional
	LastReconciledAt *metav1.Time `json:"lastReconciledAt,omitempty"`
}

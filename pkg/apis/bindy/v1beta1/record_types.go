package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RecordCommon is what the specs of all record kinds share.
type RecordCommon struct {
	// Name is the owner name, relative to the zone.
	Name string `json:"name"`

	// TTL in seconds.
	// +optional
	TTL *int64 `json:"ttl,omitempty"`
}

// RecordStatus is what the controller has observed about a record. All record kinds share it.
type RecordStatus struct {
	// Conditions of the record.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Zone is the name of the DNS zone that the record belongs to.
	// +optional
	Zone string `json:"zone,omitempty"`

	// ZoneRef points to the DNSZone object that selected the record.
	// +optional
	ZoneRef *ZoneReference `json:"zoneRef,omitempty"`

	// RecordHash is the SHA-256, in hexadecimal, of everything in the record that affects DNS data.
	// +optional
	RecordHash string `json:"recordHash,omitempty"`

	// LastUpdated is when a change of this record last reached BIND.
	// +optional
	LastUpdated *metav1.Time `json:"lastUpdated,omitempty"`

	// Addresses are the published addresses, joined by commas.
	// +optional
	Addresses string `json:"addresses,omitempty"`

	// PublishedName is the owner name under which the record stands in DNS now.
	// +optional
	PublishedName string `json:"publishedName,omitempty"`
}

// ZoneReference points from a record, or from an instance, to a zone.
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
	// LastReconciledAt is when the zone was last configured here successfully.
	// +optional
	LastReconciledAt *metav1.Time `json:"lastReconciledAt,omitempty"`
}

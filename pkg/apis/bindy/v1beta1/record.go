package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Record is an object of any of the ten record kinds. It satisfies controller-runtime's client.Object.
//
// +kubebuilder:object:generate=false
type Record interface {
	metav1.Object
	runtime.Object

	// RecordName returns spec.name: the owner name relative to the zone, "@" for the apex.
	RecordName() string
	// RecordTTL returns spec.ttl in seconds, or nil if the zone's TTL applies.
	RecordTTL() *int64
	// GetRecordStatus returns a pointer to the object's status, so that it can be changed in place.
	GetRecordStatus() *RecordStatus
}

// ObjectList is any list of this package's kinds. It satisfies controller-runtime's client.ObjectList.
//
// +kubebuilder:object:generate=false
type ObjectList interface {
	metav1.ListInterface
	runtime.Object
}

// RecordKind describes one of the ten record kinds, so that code for all of them is written once.
//
// +kubebuilder:object:generate=false
type RecordKind struct {
	// Kind is the Kubernetes kind, for example "ARecord".
	Kind string
	// Resource is the plural resource name, for example "arecords".
	Resource string
	// Singular is the kind in lower case, for example "arecord".
	Singular string
	// Type is the mnemonic of the DNS type, for example "A"; empty for DNSRecord, whose objects say their type.
	Type string
	// RRType is the number of the DNS type (IANA "Resource Record (RR) TYPEs"); 0 for DNSRecord.
	RRType uint16
	// New returns an empty object of the kind.
	New func() Record
	// NewList returns an empty list of the kind.
	NewList func() ObjectList
}

// GroupVersionKind qualifies the kind with this package's group and version.
func (k RecordKind) GroupVersionKind() schema.GroupVersionKind {
	return GroupVersion.WithKind(k.Kind)
}

// GroupVersionResource qualifies the kind's resource with this package's group and version.
func (k RecordKind) GroupVersionResource() schema.GroupVersionResource {
	return GroupVersion.WithResource(k.Resource)
}

// RecordKinds are the ten record kinds in display order.
var RecordKinds = []RecordKind{
	{"ARecord", "arecords", "arecord", "A", 1,
		func() Record { return &ARecord{} }, func() ObjectList { return &ARecordList{} }},
	{"AAAARecord", "aaaarecords", "aaaarecord", "AAAA", 28,
		func() Record { return &AAAARecord{} }, func() ObjectList { return &AAAARecordList{} }},
	{"CNAMERecord", "cnamerecords", "cnamerecord", "CNAME", 5,
		func() Record { return &CNAMERecord{} }, func() ObjectList { return &CNAMERecordList{} }},
	{"NSRecord", "nsrecords", "nsrecord", "NS", 2,
		func() Record { return &NSRecord{} }, func() ObjectList { return &NSRecordList{} }},
	{"TXTRecord", "txtrecords", "txtrecord", "TXT", 16,
		func() Record { return &TXTRecord{} }, func() ObjectList { return &TXTRecordList{} }},
	{"MXRecord", "mxrecords", "mxrecord", "MX", 15,
		func() Record { return &MXRecord{} }, func() ObjectList { return &MXRecordList{} }},
	{"SRVRecord", "srvrecords", "srvrecord", "SRV", 33,
		func() Record { return &SRVRecord{} }, func() ObjectList { return &SRVRecordList{} }},
	{"CAARecord", "caarecords", "caarecord", "CAA", 257,
		func() Record { return &CAARecord{} }, func() ObjectList { return &CAARecordList{} }},
	{"PTRRecord", "ptrrecords", "ptrrecord", "PTR", 12,
		func() Record { return &PTRRecord{} }, func() ObjectList { return &PTRRecordList{} }},
	{"DNSRecord", "dnsrecords", "dnsrecord", "", 0,
		func() Record { return &DNSRecord{} }, func() ObjectList { return &DNSRecordList{} }},
}

// RecordKindOf finds the record kind with the given Kubernetes kind, for example "ARecord".
func RecordKindOf(kind string) (RecordKind, bool) {
	return findRecordKind(func(k RecordKind) bool { return k.Kind == kind })
}

// KindOf returns the kind of a record by its Go type, because clients clear TypeMeta; the zero value if r is none of the ten kinds.
func KindOf(r Record) RecordKind {
	var kind string
	switch r.(type) {
	case *ARecord:
		kind = "ARecord"
	case *AAAARecord:
		kind = "AAAARecord"
	case *CNAMERecord:
		kind = "CNAMERecord"
	case *NSRecord:
		kind = "NSRecord"
	case *TXTRecord:
		kind = "TXTRecord"
	case *MXRecord:
		kind = "MXRecord"
	case *SRVRecord:
		kind = "SRVRecord"
	case *CAARecord:
		kind = "CAARecord"
	case *PTRRecord:
		kind = "PTRRecord"
	case *DNSRecord:
		kind = "DNSRecord"
	}
	k, _ := RecordKindOf(kind)
	return k
}

func findRecordKind(match func(RecordKind) bool) (RecordKind, bool) {
	for _, k := range RecordKinds {
		if match(k) {
			return k, true
		}
	}
	return RecordKind{}, false
}

// RecordName implements Record.
func (r *ARecord) RecordName() string { return r.Spec.Name }

// RecordTTL implements Record.
func (r *ARecord) RecordTTL() *int64 { return r.Spec.TTL }

// GetRecordStatus implements Record.
func (r *ARecord) GetRecordStatus() *RecordStatus { return &r.Status }

// RecordName implements Record.
func (r *AAAARecord) RecordName() string { return r.Spec.Name }

// RecordTTL implements Record.
func (r *AAAARecord) RecordTTL() *int64 { return r.Spec.TTL }

// GetRecordStatus implements Record.
func (r *AAAARecord) GetRecordStatus() *RecordStatus { return &r.Status }

// RecordName implements Record.
func (r *CNAMERecord) RecordName() string { return r.Spec.Name }

// RecordTTL implements Record.
func (r *CNAMERecord) RecordTTL() *int64 { return r.Spec.TTL }

// GetRecordStatus implements Record.
func (r *CNAMERecord) GetRecordStatus() *RecordStatus { return &r.Status }

// RecordName implements Record.
func (r *NSRecord) RecordName() string { return r.Spec.Name }

// RecordTTL implements Record.
func (r *NSRecord) RecordTTL() *int64 { return r.Spec.TTL }

// GetRecordStatus implements Record.
func (r *NSRecord) GetRecordStatus() *RecordStatus { return &r.Status }

// RecordName implements Record.
func (r *TXTRecord) RecordName() string { return r.Spec.Name }

// RecordTTL implements Record.
func (r *TXTRecord) RecordTTL() *int64 { return r.Spec.TTL }

// GetRecordStatus implements Record.
func (r *TXTRecord) GetRecordStatus() *RecordStatus { return &r.Status }

// RecordName implements Record.
func (r *MXRecord) RecordName() string { return r.Spec.Name }

// RecordTTL implements Record.
func (r *MXRecord) RecordTTL() *int64 { return r.Spec.TTL }

// GetRecordStatus implements Record.
func (r *MXRecord) GetRecordStatus() *RecordStatus { return &r.Status }

// RecordName implements Record.
func (r *SRVRecord) RecordName() string { return r.Spec.Name }

// RecordTTL implements Record.
func (r *SRVRecord) RecordTTL() *int64 { return r.Spec.TTL }

// GetRecordStatus implements Record.
func (r *SRVRecord) GetRecordStatus() *RecordStatus { return &r.Status }

// RecordName implements Record.
func (r *CAARecord) RecordName() string { return r.Spec.Name }

// RecordTTL implements Record.
func (r *CAARecord) RecordTTL() *int64 { return r.Spec.TTL }

// GetRecordStatus implements Record.
func (r *CAARecord) GetRecordStatus() *RecordStatus { return &r.Status }

// RecordName implements Record.
func (r *PTRRecord) RecordName() string { return r.Spec.Name }

// RecordTTL implements Record.
func (r *PTRRecord) RecordTTL() *int64 { return r.Spec.TTL }

// GetRecordStatus implements Record.
func (r *PTRRecord) GetRecordStatus() *RecordStatus { return &r.Status }

// RecordName implements Record.
func (r *DNSRecord) RecordName() string { return r.Spec.Name }

// RecordTTL implements Record.
func (r *DNSRecord) RecordTTL() *int64 { return r.Spec.TTL }

// GetRecordStatus implements Record.
func (r *DNSRecord) GetRecordStatus() *RecordStatus { return &r.Status }

// RecordCommon holds the fields that the specs of all record kinds share.
type RecordCommon struct {
	// Name is the owner name of the record, relative to the zone: "www" in zone example.com is www.example.com. "@" is
	// the zone apex. The first label may be "*" (RFC 4592). Service labels such as "_sip._tcp" and deeper names such as
	// "a.b.c" are allowed. Other characters are written as in zone files, as "\." or "\032"; the first label of a service
	// instance may hold blanks and UTF-8 as they are: "Office Printer._ipp._tcp" (RFC 6763, section 4.1). Upper and lower
	// case is kept.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('.')",message="spec.name is relative to the zone and takes no trailing dot: write \"www\" for www.example.com in zone example.com, or \"@\" for the zone itself"
	// +kubebuilder:validation:XValidation:rule="self.endsWith('.') || self == '@' || self.contains('\\\\') || self.matches('^[^.]{1,63}([.][^.]+)*[.]_[A-Za-z0-9-]{1,62}[.]_([Tt][Cc][Pp]|[Uu][Dd][Pp])([.][A-Za-z0-9_/-]{1,63})*$') || self.matches('^([*]|[A-Za-z0-9_/-]{1,63})([.][A-Za-z0-9_/-]{1,63})*$')",message="spec.name must be \"@\" for the zone itself, or labels of 1 to 63 letters, digits, \"-\", \"_\" or \"/\" joined by single dots, where only the first may be \"*\"; others are written with a backslash, such as \"\\032\" for a blank"
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

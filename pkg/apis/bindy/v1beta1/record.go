package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Record is an object of any of the eight record kinds. It satisfies controller-runtime's client.Object.
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

// RecordKind describes one of the eight record kinds, so that code for all of them is written once.
//
// +kubebuilder:object:generate=false
type RecordKind struct {
	// Kind is the Kubernetes kind, for example "ARecord".
	Kind string
	// Resource is the plural resource name, for example "arecords".
	Resource string
	// Singular is the kind in lower case, for example "arecord".
	Singular string
	// Type is the mnemonic of the DNS type, for example "A".
	Type string
	// RRType is the number of the DNS type (IANA "Resource Record (RR) TYPEs").
	RRType uint16
	// New returns an empty object of the kind.
	New func() Record
	// NewList returns an empty list of the kind.
	NewList func() ObjectList
}

// GroupVersionKind returns the kind with its group and version.
func (k RecordKind) GroupVersionKind() schema.GroupVersionKind {
	return GroupVersion.WithKind(k.Kind)
}

// GroupVersionResource returns the kind's resource with its group and version.
func (k RecordKind) GroupVersionResource() schema.GroupVersionResource {
	return GroupVersion.WithResource(k.Resource)
}

// RecordKinds are the eight record kinds in display order.
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
}

// RecordKindOf returns the record kind with the given Kubernetes kind, for example "ARecord".
func RecordKindOf(kind string) (RecordKind, bool) {
	return findRecordKind(func(k RecordKind) bool { return k.Kind == kind })
}

// RecordKindOfType returns the record kind with the given DNS type number.
func RecordKindOfType(rrtype uint16) (RecordKind, bool) {
	return findRecordKind(func(k RecordKind) bool { return k.RRType == rrtype })
}

// KindOf returns the kind of a record. It goes by the Go type, because clients clear TypeMeta. The result is the zero
// value if r is none of the eight kinds.
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

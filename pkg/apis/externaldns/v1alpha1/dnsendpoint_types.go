package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DNSEndpoint holds DNS names that another program wants to publish. People use a record kind such as ARecord instead.
// Each endpoint belongs to the zone with the longest name that contains its dnsName.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=dns
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=https://github.com/kubernetes-sigs/external-dns/pull/2007"
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Last sync",type=date,JSONPath=`.status.lastSyncTime`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DNSEndpoint struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what to publish.
	//
	// +optional
	Spec DNSEndpointSpec `json:"spec,omitempty"`

	// Status is what the controller observed last.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status DNSEndpointStatus `json:"status,omitempty"`
}

// DNSEndpointSpec is what to publish.
type DNSEndpointSpec struct {
	// Endpoints to publish, one RRset each.
	//
	// +optional
	// +listType=atomic
	Endpoints []*Endpoint `json:"endpoints,omitempty"`
}

// Endpoint is one RRset.
type Endpoint struct {
	// DNSName is the full owner name, with or without a trailing dot.
	//
	// +optional
	DNSName string `json:"dnsName,omitempty"`

	// Targets are the values of the RRset, each in the presentation format of its type: "192.0.2.1" for A,
	// "10 mail.example.com" for MX.
	//
	// +optional
	// +listType=atomic
	Targets []string `json:"targets,omitempty"`

	// RecordType is the DNS type in upper case, such as A or HTTPS, or TYPE65280 for one without a name. SOA, and types that a signing
	// server maintains, are not published.
	//
	// +optional
	RecordType string `json:"recordType,omitempty"`

	// RecordTTL is how long, in seconds, a resolver may cache the RRset. If it is 0 or absent, the zone's TTL applies.
	//
	// +optional
	RecordTTL int64 `json:"recordTTL,omitempty"`

	// SetIdentifier distinguishes several endpoints of one name and type.
	//
	// +optional
	SetIdentifier string `json:"setIdentifier,omitempty"`

	// Labels are notes of the program that wrote the endpoint.
	//
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// ProviderSpecific holds settings that only some DNS providers support.
	//
	// +optional
	// +listType=atomic
	ProviderSpecific []ProviderSpecificProperty `json:"providerSpecific,omitempty"`
}

// ProviderSpecificProperty is a setting that only some DNS providers support.
type ProviderSpecificProperty struct {
	// Name of the setting.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// Value of the setting.
	//
	// +optional
	Value string `json:"value,omitempty"`
}

// DNSEndpointStatus is what the controller observed last.
type DNSEndpointStatus struct {
	// ObservedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the endpoints. Accepted: they are part of their zones' data; False with reason Invalid, NoMatchingZone
	// or Conflict. Programmed: every primary was queried and answered with them. Ready: the same as Programmed, under the name
	// that external-dns uses.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// LastSyncTime is when the servers were last brought to these endpoints: when Programmed became True for a generation.
	//
	// +optional
	LastSyncTime *metav1.Time `json:"lastSyncTime,omitempty"`

	// Zones are the zones that hold data of these endpoints.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	Zones []EndpointZone `json:"zones,omitempty"`
}

// EndpointZone is the data of a DNSEndpoint in one zone.
type EndpointZone struct {
	// Namespace of the DNSZone.
	Namespace string `json:"namespace"`
	// Name of the DNSZone.
	Name string `json:"name"`
	// ZoneName is the DNS name of the zone.
	ZoneName string `json:"zoneName"`

	// RRsets that the zone's servers were observed to hold, each as its owner name and type: "www.example.com./A".
	//
	// +optional
	// +listType=atomic
	RRsets []string `json:"rrsets,omitempty"`
}

// DNSEndpointList is a list of DNSEndpoint objects.
//
// +kubebuilder:object:root=true
type DNSEndpointList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DNSEndpoint `json:"items"`
}

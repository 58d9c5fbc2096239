package v1beta1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

// DNSZone is an authoritative DNS zone: its SOA, its name servers, the BIND instances that serve it and the records that
// it holds.
//
// The instances of a zone are those of its clusterRef and those that any bind9InstancesFrom selects. Its records are
// those of its own namespace that any recordsFrom selects. If two objects declare the same zone name on the same servers,
// the older one wins, and the younger one has Ready=False with reason DuplicateZone.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={zone,zones,dz,dzs},categories=dns
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.spec.zoneName`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.clusterRef`
// +kubebuilder:printcolumn:name="Records",type=integer,JSONPath=`.status.recordsCount`
// +kubebuilder:printcolumn:name="Instances",type=integer,JSONPath=`.status.bind9InstancesCount`
// +kubebuilder:printcolumn:name="TTL",type=integer,JSONPath=`.spec.ttl`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DNSZone struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the zone to serve.
	Spec DNSZoneSpec `json:"spec"`

	// Status is what the controller observed last. The zone's SyncStatus shows what the servers answer now.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status DNSZoneStatus `json:"status,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *DNSZone) UnmarshalJSON(data []byte) error {
	type plain DNSZone
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// DNSZoneSpec is the desired zone.
type DNSZoneSpec struct {
	// ZoneName is the DNS name of the zone, without a trailing dot: "example.com", "2.0.192.in-addr.arpa", or
	// "0/29.2.0.192.in-addr.arpa" (RFC 2317). It cannot be changed.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.zoneName cannot be changed: delete this DNSZone and create one with the other name"
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('.')",message="spec.zoneName takes no trailing dot: write \"example.com\""
	// +kubebuilder:validation:XValidation:rule="self.endsWith('.') || self.matches('^[A-Za-z0-9_]([A-Za-z0-9_/-]{0,61}[A-Za-z0-9_])?([.][A-Za-z0-9_]([A-Za-z0-9_/-]{0,61}[A-Za-z0-9_])?)*$')",message="spec.zoneName must be a domain name such as example.com: labels of 1 to 63 letters, digits, \"-\", \"_\" or \"/\" joined by single dots, none starting or ending with \"-\" or \"/\""
	// +kubebuilder:validation:XValidation:rule="!isIP(self)",message="spec.zoneName must be a domain name, not an IP address: the reverse zone of 192.0.2.0/24 is 2.0.192.in-addr.arpa"
	ZoneName string `json:"zoneName"`

	// SOARecord holds the values of the zone's SOA record.
	SOARecord SOARecord `json:"soaRecord"`

	// TTL, in seconds, of every record in the zone without one of its own, 0 to 2147483647. Defaults to 3600.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TTL *int64 `json:"ttl,omitempty"`

	// ClusterRef names the cluster all of whose instances serve the zone: a Bind9Cluster of the zone's namespace, or
	// else a Bind9GlobalCluster or ClusterBind9Provider.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClusterRef string `json:"clusterRef,omitempty"`

	// ClusterProviderRef is the older form of clusterRef for a Bind9GlobalCluster or ClusterBind9Provider. If both are
	// set, the instances of both clusters serve the zone.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClusterProviderRef string `json:"clusterProviderRef,omitempty"`

	// Bind9InstancesFrom selects, by label, Bind9Instances that serve the zone in addition to those of clusterRef. An
	// instance has to match one selector. An instance of another namespace is selected only if the zone's annotation
	// bindy.firestoned.io/allow-instance-namespaces lists the instance's namespace, and the instance's annotation
	// bindy.firestoned.io/allow-zone-namespaces the zone's.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Bind9InstancesFrom []InstanceSource `json:"bind9InstancesFrom,omitempty"`

	// ProviderRefs name DNSProviders of the zone's namespace: servers that Lockstep does not run, where the zone lives as
	// well. The zone is in sync when it is on all of them and on all instances.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ProviderRefs []ProviderReference `json:"providerRefs,omitempty"`

	// RecordsFrom selects, by label, the records of the zone. A record has to match one selector. Only records of the
	// zone's own namespace are considered, and those of namespaces that a namespaceSelector matches.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	RecordsFrom []RecordSource `json:"recordsFrom,omitempty"`

	// NameServers are published as NS records of the zone, in addition to soaRecord.primaryNs unless that is hidden.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NameServers []NameServer `json:"nameServers,omitempty"`

	// NameServerIPs maps host names of name servers to their addresses. Deprecated: use nameServers.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, isIP(self[k]))",message="spec.nameServerIps maps host names to IP addresses, for example \"ns1.example.com.\": \"192.0.2.53\"; nameServers is its newer form",messageExpression=`'spec.nameServerIps maps host names to IP addresses, for example "ns1.example.com.": "192.0.2.53"; nameServers is its newer form; no address: ' + self.filter(k, !isIP(self[k]))[0]`
	NameServerIPs map[string]string `json:"nameServerIps,omitempty"`

	// DNSSECPolicy names the dnssec-policy of named that signs the zone. It replaces the cluster's: "default", or one that
	// its dnssec.signing defines. "none" turns signing off. A zone that was signed stays signed until this is "insecure":
	// set that once the parent zone has had no DS records for longer than their TTL. A parent zone that is declared here and
	// delegates the zone loses them by itself, and the zone stays signed for so long. Where others run the zone's primaries, "insecure"
	// removes the DS records there, and nothing else has a meaning.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]*$')",message="spec.dnssecPolicy must be the name of a dnssec-policy: letters, digits, \".\", \"_\" and \"-\""
	DNSSECPolicy string `json:"dnssecPolicy,omitempty"`

	// Guard is how much of the zone may vanish from its servers before somebody has to confirm it. Without it, a zone of 100
	// RRsets or more may lose half of them within ten minutes.
	//
	// +optional
	Guard *ZoneGuard `json:"guard,omitempty"`
}

// ZoneGuard limits how many RRsets of a zone may vanish within ten minutes. What exceeds a limit is not sent to any server:
// the zone is Held, and status.heldPlan names what is held back. The annotation bindy.firestoned.io/confirm with that value
// confirms it. The deletion of the DNSZone is not limited.
type ZoneGuard struct {
	// Removed limits how many RRsets may be removed. Without it, zones of 100 RRsets or more may lose 50 percent. "percent: 100"
	// is no limit.
	//
	// +optional
	Removed *GuardLimit `json:"removed,omitempty"`

	// Changed limits how many RRsets may lose values and have others, or fewer, from then on. Without it there is no limit. A
	// new TTL, or a value in addition, is no loss.
	//
	// +optional
	Changed *GuardLimit `json:"changed,omitempty"`

	// NeverEmpty are names at which the last RRset is never removed without confirmation, as spec.name of records has them: "@",
	// "www", or "www.example.com.".
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=254
	NeverEmpty []string `json:"neverEmpty,omitempty"`
}

// GuardLimit is a number of RRsets. If both fields are set, neither may be exceeded.
//
// +kubebuilder:validation:XValidation:rule="has(self.percent) || has(self.count)",message="a limit needs percent, count, or both: set one, for example percent: 20"
type GuardLimit struct {
	// Percent of the RRsets that the zone has, 0 to 100. With 0 nothing may vanish.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`

	// Count of RRsets, 0 or more.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Count *int32 `json:"count,omitempty"`
}

// SOARecord holds the fields of an SOA record (RFC 1035, section 3.3.13).
type SOARecord struct {
	// PrimaryNS is the host name of the zone's primary server (MNAME), ending with a dot: "ns1.example.com.". It is also
	// published as an NS record, unless hiddenPrimary is true.
	//
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:XValidation:rule="self.endsWith('.')",message="spec.soaRecord.primaryNs must end with a dot, which says that the name is complete: ns1.example.com."
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9_/-]{1,63}[.])*[A-Za-z0-9_/-]{1,63}[.]?$')",message="spec.soaRecord.primaryNs must be a host name such as ns1.example.com.: labels of 1 to 63 letters, digits, \"-\", \"_\" or \"/\" joined by single dots"
	// +kubebuilder:validation:XValidation:rule="!isIP(self.endsWith('.') ? self.substring(0, size(self) - 1) : self)",message="spec.soaRecord.primaryNs must be a host name such as ns1.example.com., not an IP address"
	PrimaryNS string `json:"primaryNs"`

	// HiddenPrimary keeps primaryNs out of the NS records, and out of the addresses that are published for name servers: the
	// primary takes updates and nobody is to ask it. The name servers are nameServers alone, of which there has to be one.
	//
	// +optional
	HiddenPrimary bool `json:"hiddenPrimary,omitempty"`

	// AdminEmail is the mail address of the person responsible (RNAME): "hostmaster.example.com." in DNS notation, or
	// "hostmaster@example.com", which is converted.
	//
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:XValidation:rule="self.contains('@') || self.endsWith('.')",message="spec.soaRecord.adminEmail must be a mail address: hostmaster@example.com, or hostmaster.example.com. with a dot at its end"
	// +kubebuilder:validation:XValidation:rule="self.contains('@') ? self.matches('^[A-Za-z0-9.!#$%&*+/=?^_{|}~-]{1,63}@[A-Za-z0-9_-]{1,63}([.][A-Za-z0-9_-]{1,63})*[.]?$') : self.matches(r'^(([A-Za-z0-9_/+-]|[\\\\].){1,127}[.])*([A-Za-z0-9_/+-]|[\\\\].){1,127}[.]?$')",message="spec.soaRecord.adminEmail must be a mail address such as hostmaster@example.com or hostmaster.example.com."
	AdminEmail string `json:"adminEmail"`

	// Serial is the lowest serial that the zone may have, 0 to 4294967295. Serials are assigned automatically from it
	// upwards (RFC 1982). A zone with a lower one gets this one at once, which makes secondaries transfer that were ahead of
	// it. If it is 0 or absent, there is no lower limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	Serial int64 `json:"serial,omitempty"`

	// Refresh is how often, in seconds, a secondary that receives no NOTIFY checks for a new serial, 1 to 2147483647.
	//
	// +optional
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Refresh int64 `json:"refresh,omitempty"`

	// Retry is how long, in seconds, a secondary waits after a failed refresh, 1 to 2147483647.
	//
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Retry int64 `json:"retry,omitempty"`

	// Expire is how long, in seconds, a secondary that cannot refresh continues to answer for the zone, 1 to 2147483647.
	//
	// +optional
	// +kubebuilder:default=604800
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Expire int64 `json:"expire,omitempty"`

	// NegativeTTL is how long, in seconds, a resolver may cache that a name does not exist, 0 to 2147483647 (RFC 2308).
	//
	// +optional
	// +kubebuilder:default=86400
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	NegativeTTL *int64 `json:"negativeTtl,omitempty"`
}

// InstanceSource selects Bind9Instances by label.
type InstanceSource struct {
	// Selector over the labels of Bind9Instances. An empty selector matches every instance.
	Selector metav1.LabelSelector `json:"selector"`
}

// RecordSource selects records by label.
type RecordSource struct {
	// Selector over the labels of records. An empty selector matches every record of the namespace.
	Selector metav1.LabelSelector `json:"selector"`
	// NamespaceSelector over the labels of namespaces: besides the records of the zone's own namespace, the selector is for those of
	// namespaces that this matches, if their annotation bindy.firestoned.io/allow-zone-namespaces lists the zone's namespace. An empty one
	// matches every namespace. Such records may have any name of the zone, and a zone of their own namespace goes before this one.
	//
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// NameServer is an authoritative server of a zone.
type NameServer struct {
	// Hostname of the server, ending with a dot: "ns2.example.com.".
	//
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:XValidation:rule="self.endsWith('.')",message="hostname must end with a dot, which says that the name is complete: ns2.example.com."
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9_/-]{1,63}[.])*[A-Za-z0-9_/-]{1,63}[.]?$')",message="hostname must be a host name such as ns2.example.com.: labels of 1 to 63 letters, digits, \"-\", \"_\" or \"/\" joined by single dots"
	// +kubebuilder:validation:XValidation:rule="!isIP(self.endsWith('.') ? self.substring(0, size(self) - 1) : self)",message="hostname must be a host name such as ns2.example.com., not an IP address"
	Hostname string `json:"hostname"`

	// IPv4Address of the server, published as an A record if its name is in the zone.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self) && ip(self).family() == 4",message="ipv4Address must be an IPv4 address such as 192.0.2.53; ipv6Address takes IPv6"
	IPv4Address string `json:"ipv4Address,omitempty"`

	// IPv6Address of the server, published as an AAAA record if its name is in the zone.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self) && ip(self).family() == 6",message="ipv6Address must be an IPv6 address such as 2001:db8::53; ipv4Address takes IPv4"
	IPv6Address string `json:"ipv6Address,omitempty"`
}

// DNSZoneStatus is what the controller observed about a zone.
type DNSZoneStatus struct {
	// Conditions of the zone. Ready: every server serves it as declared; the reason says why not. Progressing: a change is being applied.
	// Degraded: the zone is served, but not as declared.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// FailureReason is set while a person has to act: a server refuses the zone's updates or does not know the key, the zone
	// may not be served, or an instance has been without it for too long. Transient failures never set it.
	//
	// +optional
	FailureReason string `json:"failureReason,omitempty"`
	// FailureMessage describes the failure, in the server's own words if it is a server's.
	//
	// +optional
	FailureMessage string `json:"failureMessage,omitempty"`

	// Records are the records that the zone selects and that are Ready, and the endpoints of DNSEndpoints that every
	// primary serves. A large zone lists 1000 of them, and the selection changes as little as possible.
	//
	// +optional
	// +listType=atomic
	Records []RecordReference `json:"records,omitempty"`

	// RecordsCount is the number of records and endpoints of the zone that every primary serves, whether records lists
	// them or not.
	//
	// +optional
	RecordsCount int32 `json:"recordsCount"`

	// Bind9Instances are the instances of the zone, with the state of the zone on each.
	//
	// +optional
	// +listType=atomic
	Bind9Instances []ZoneInstance `json:"bind9Instances,omitempty"`

	// Bind9InstancesCount is the number of entries in bind9Instances.
	//
	// +optional
	Bind9InstancesCount int32 `json:"bind9InstancesCount"`

	// Providers are the DNSProviders of the zone, with the state of the zone on each.
	//
	// +optional
	// +listType=atomic
	Providers []ZoneProvider `json:"providers,omitempty"`

	// Arrivals say since when the zone has been on its servers. Of zones that contend for a name on the same servers, the one
	// that came there first has it. Nobody but the controller changes them. Absent until the controller has looked at the zone.
	//
	// +optional
	Arrivals *ZoneArrivals `json:"arrivals,omitempty"`

	// Serial is the SOA serial last written to the primaries.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	Serial *int64 `json:"serial,omitempty"`

	// ForeignRRsetsCount is the number of RRsets in the zone that no object declares. They are kept unless the
	// zone's annotation bindy.firestoned.io/prune is "true".
	//
	// +optional
	ForeignRRsetsCount int32 `json:"foreignRRsetsCount,omitempty"`

	// ForeignRRsets lists up to 100 of those RRsets by owner name and type: "www.example.com. A".
	//
	// +optional
	// +listType=atomic
	ForeignRRsets []string `json:"foreignRRsets,omitempty"`

	// HeldPlan names the changes that spec.guard holds back; empty if there are none. To confirm them, set the annotation
	// bindy.firestoned.io/confirm to it. Other changes are another plan.
	//
	// +optional
	HeldPlan string `json:"heldPlan,omitempty"`

	// DNSSEC describes how the zone is signed. Absent if it is not.
	//
	// +optional
	DNSSEC *DNSSECStatus `json:"dnssec,omitempty"`
}

// ZoneArrivals are the hosts that a zone is on.
type ZoneArrivals struct {
	// Hosts that the zone is on, sorted. There are none while the zone is refused.
	//
	// +optional
	// +listType=map
	// +listMapKey=host
	Hosts []ZoneArrival `json:"hosts,omitempty"`
}

// ZoneArrival is since when a zone has been on a host.
type ZoneArrival struct {
	// Host is cluster/NAME for what clusterRef or clusterProviderRef names, instance/NAMESPACE/NAME for an instance that
	// bind9InstancesFrom selects, and provider/NAME for a DNSProvider.
	Host string `json:"host"`
	// Since is when the zone came to the host (RFC 3339, UTC with microseconds): texts are ordered as the times are.
	//
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{6}Z$`
	Since string `json:"since"`
}

// RecordReference refers from a zone to one of its records.
type RecordReference struct {
	// APIVersion of the record.
	APIVersion string `json:"apiVersion"`
	// Kind of the record, for example ARecord.
	Kind string `json:"kind"`
	// Name of the record object.
	Name string `json:"name"`
	// Namespace of the record object.
	Namespace string `json:"namespace"`
	// RecordName is the record's spec.name.
	//
	// +optional
	RecordName string `json:"recordName,omitempty"`
	// LastReconciledAt is when the record last reached BIND (RFC 3339).
	//
	// +optional
	LastReconciledAt *metav1.Time `json:"lastReconciledAt,omitempty"`
}

// ZoneInstanceStatus is the state of a zone on an instance.
//
// +kubebuilder:validation:Enum=Claimed;Configured;Failed
type ZoneInstanceStatus string

// The states of a zone on an instance.
const (
	// ZoneClaimed: the zone selects the instance and has not been configured on it yet.
	ZoneClaimed ZoneInstanceStatus = "Claimed"
	// ZoneConfigured: the instance serves the zone.
	ZoneConfigured ZoneInstanceStatus = "Configured"
	// ZoneFailed: configuring the zone on the instance failed; see the message.
	ZoneFailed ZoneInstanceStatus = "Failed"
)

// ZoneInstance refers from a zone to one of its instances.
type ZoneInstance struct {
	// APIVersion of the instance.
	APIVersion string `json:"apiVersion"`
	// Kind of the instance, always Bind9Instance.
	Kind string `json:"kind"`
	// Name of the instance.
	Name string `json:"name"`
	// Namespace of the instance.
	Namespace string `json:"namespace"`
	// Status is Claimed (selected, not configured yet), Configured or Failed (see message).
	Status ZoneInstanceStatus `json:"status"`
	// LastReconciledAt is when the instance got the zone, or since when it lacks it (RFC 3339).
	//
	// +optional
	LastReconciledAt *metav1.Time `json:"lastReconciledAt,omitempty"`
	// Reason of a failure that the sidecar of a server reported, such as BindcarBadRequest.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message explains the status.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// ZoneProvider is the state of a zone on one of its providers.
type ZoneProvider struct {
	// Name of the DNSProvider.
	Name string `json:"name"`
	// Status is Claimed (named, and the zone is not there yet as declared), Configured or Failed (see message).
	Status ZoneInstanceStatus `json:"status"`
	// LastReconciledAt is when the provider got the zone, or since when it lacks it (RFC 3339).
	//
	// +optional
	LastReconciledAt *metav1.Time `json:"lastReconciledAt,omitempty"`
	// Message explains the status.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// DNSSECStatus describes how a zone is signed.
type DNSSECStatus struct {
	// Signed is true once the whole zone is signed on the server that signs. The other servers follow it.
	Signed bool `json:"signed"`
	// Policy is the dnssec-policy that the zone is signed with. Absent if others sign it.
	//
	// +optional
	Policy string `json:"policy,omitempty"`
	// DSRecords are the records to publish in the parent zone, in presentation format, with SHA-256 digests: one for each
	// key-signing key that is served.
	//
	// +optional
	// +listType=atomic
	DSRecords []string `json:"dsRecords,omitempty"`
	// KeyTag of the key-signing key.
	//
	// +optional
	KeyTag *int64 `json:"keyTag,omitempty"`
	// Algorithm mnemonic of the key-signing key, for example ECDSAP256SHA256.
	//
	// +optional
	Algorithm string `json:"algorithm,omitempty"`
	// Delegation is how DS records come into the zones above this one that are declared here and delegate it. Absent if there are none.
	//
	// +optional
	Delegation *SecureDelegation `json:"delegation,omitempty"`
}

// SecureDelegation is which DS records the zones above a signed zone are to have. Nobody but the controller changes it.
type SecureDelegation struct {
	// Parents are the UIDs of the DNSZones that delegate the zone.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Parents []types.UID `json:"parents,omitempty"`
	// ParentElsewhere is the name of the zone above that is not declared here and delegates the zone, if the controller asks such zones.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	ParentElsewhere string `json:"parentElsewhere,omitempty"`
	// Keys are the key-signing keys that the zone's servers have.
	//
	// +optional
	// +listType=map
	// +listMapKey=ds
	// +kubebuilder:validation:MaxItems=32
	Keys []DelegatedKey `json:"keys,omitempty"`
	// TTL, in seconds, is the longest that DS records of the zone have had.
	//
	// +optional
	TTL int64 `json:"ttl,omitempty"`
	// AbsentSince is since when no server of the parents has had a DS record of the zone.
	//
	// +optional
	AbsentSince *metav1.Time `json:"absentSince,omitempty"`
	// SigningMayEnd is true if signing is to end and no resolver can have a DS record any more.
	//
	// +optional
	SigningMayEnd bool `json:"signingMayEnd,omitempty"`
}

// dsMargin is added to the TTL of DS records: one may have been published just before its publisher heard that there are to be none, and may
// have been answered with after nobody was seen to.
const dsMargin = time.Minute

// ForgottenAt is when no resolver has a DS record of the zone any more; false while a server of its parents may answer with one.
func (d *SecureDelegation) ForgottenAt() (time.Time, bool) {
	if d == nil || d.AbsentSince == nil {
		return time.Time{}, false
	}
	return d.AbsentSince.Add(time.Duration(d.TTL)*time.Second + dsMargin), true
}

// Published are the data of the DS records that the parents are to have.
func (d *SecureDelegation) Published() (records []string) {
	if d == nil {
		return nil
	}
	for _, k := range d.Keys {
		if k.Published {
			records = append(records, k.DS)
		}
	}
	return records
}

// IsUnconfirmed reports whether parents may have a DS record of which the server that signs does not know.
func (d *SecureDelegation) IsUnconfirmed() bool {
	return d != nil && slices.ContainsFunc(d.Keys, func(k DelegatedKey) bool { return k.Published && !k.Confirmed })
}

// DelegatedKey is a key-signing key of a zone.
type DelegatedKey struct {
	// DS is the data of the key's DS record: key tag, algorithm, digest type and digest.
	//
	// +kubebuilder:validation:MaxLength=160
	DS string `json:"ds"`
	// ServedSince is since when all servers of the zone have had the key and its signatures.
	ServedSince metav1.Time `json:"servedSince"`
	// Published is true if the parents are to have the DS record.
	//
	// +optional
	Published bool `json:"published,omitempty"`
	// ChangedAt is when published became what it is.
	//
	// +optional
	ChangedAt *metav1.Time `json:"changedAt,omitempty"`
	// Confirmed is true once the server that signs was told that all servers of the parents have the DS record, and until it was told that
	// none has it. Nobody tells a server that others run: it is true once all servers of the parents have the DS record.
	//
	// +optional
	Confirmed bool `json:"confirmed,omitempty"`
}

// DNSZoneList is a list of DNSZone objects.
//
// +kubebuilder:object:root=true
type DNSZoneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DNSZone `json:"items"`
}

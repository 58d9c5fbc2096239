package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
)

// DNSProvider is a place outside of Lockstep's own BIND fleets where zones are served: DNS servers that take updates (RFC 2136),
// CoreDNS with etcd, or servers that transfer zones from our own primaries. A zone of the same namespace names it in
// spec.providerRefs. Its keys are Secrets of its own namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={dnsp,dnsps},categories=dns
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.status.type`
// +kubebuilder:printcolumn:name="Zones",type=integer,JSONPath=`.status.zonesCount`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DNSProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says where zones are served, and with which keys.
	Spec DNSProviderSpec `json:"spec"`

	// Status is what the controller observed last. The SyncStatus of a zone shows what the servers answer now.
	//
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status DNSProviderStatus `json:"status,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler: an unreadable field is no reason to lose the object. See package lenient.
func (o *DNSProvider) UnmarshalJSON(data []byte) error {
	type plain DNSProvider
	return lenient.Unmarshal(data, (*plain)(o), &o.ObjectMeta)
}

// DNSProviderSpec says where zones are served. Exactly one of its fields is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.rfc2136), has(self.coreDNS), has(self.secondaries)].filter(x, x).size() == 1",message="spec must have exactly one of rfc2136, coreDNS and secondaries: set the one for these servers, and leave out the others"
type DNSProviderSpec struct {
	// RFC2136 are DNS servers that take dynamic updates: BIND, Knot, PowerDNS and others.
	//
	// +optional
	RFC2136 *RFC2136Provider `json:"rfc2136,omitempty"`

	// CoreDNS is CoreDNS with the plugin etcd.
	//
	// +optional
	CoreDNS *CoreDNSProvider `json:"coreDNS,omitempty"`

	// Secondaries are servers that transfer the zones from Lockstep's own primaries.
	//
	// +optional
	Secondaries *SecondariesProvider `json:"secondaries,omitempty"`

	// MaxRecordsPerType is how many records of one name and type the servers take, 100 to 4000. Defaults to 100, which is the default of
	// BIND (max-records-per-type). A zone has as many as each of its servers takes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=4000
	MaxRecordsPerType *int32 `json:"maxRecordsPerType,omitempty"`
}

// RFC2136Provider are DNS servers that take dynamic updates. The zones must exist there: none is created or deleted.
//
// +kubebuilder:validation:XValidation:rule="!has(self.writers) || self.writers != 'Shared' || self.primaries.size() == 1",message="writers: Shared cannot be combined with more than one primary: servers that count serials themselves cannot be kept on one serial. Name one primary here, and each other in a DNSProvider of its own"
// +kubebuilder:validation:XValidation:rule="!has(self.readBy) || self.readBy != 'Query' || self.primaries.size() == 1",message="readBy: Query cannot be combined with more than one primary: queries do not show undeclared records, so the primaries cannot be kept equal. Use readBy: Transfer, or name one primary here and each other in a DNSProvider of its own"
// +kubebuilder:validation:XValidation:rule="!has(self.ownership) || self.ownership != 'Values' || (has(self.writers) && self.writers == 'Shared')",message="ownership: Values needs writers: Shared, because others own values in the same zone: set writers to Shared, or leave ownership out"
// +kubebuilder:validation:XValidation:rule="!has(self.ownership) || self.ownership != 'Values' || !has(self.readBy) || self.readBy == 'Transfer'",message="ownership: Values cannot be combined with readBy: Query, because the whole zone shows who owns a value: set readBy to Transfer, or leave ownership out"
// +kubebuilder:validation:XValidation:rule="!has(self.ownerID) || (has(self.ownership) && self.ownership == 'Values')",message="ownerID needs ownership: Values: set that, or leave ownerID out"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.ownership) || oldSelf.ownership != 'Values' || (has(self.ownership) && self.ownership == 'Values' && has(self.ownerID) == has(oldSelf.ownerID) && (!has(self.ownerID) || self.ownerID == oldSelf.ownerID))",message="ownership: Values and ownerID cannot be changed, because nobody would own the values that the zones have under them: delete the DNSZones, which removes their values from the server, and create the DNSProvider again"
type RFC2136Provider struct {
	// Primaries are the servers that take updates. They are kept on one content and one serial. With writers Shared there is one.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Primaries []ProviderServer `json:"primaries"`

	// Secondaries are servers that follow the primaries. They are asked, and never written to.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Secondaries []ProviderServer `json:"secondaries,omitempty"`

	// UpdateKey is the TSIG key that updates are signed with. Nothing is sent without it.
	//
	// +required
	UpdateKey ProviderKey `json:"updateKey"`

	// TransferKey is the TSIG key that questions and zone transfers are signed with. Defaults to updateKey; with a key of
	// its own, which may only transfer, Lockstep's API server cannot read the one that may update.
	//
	// +optional
	TransferKey *ProviderKey `json:"transferKey,omitempty"`

	// ReadBy says how the content of a zone is read: Transfer (AXFR and IXFR), or Query where no transfer is allowed: then there is a
	// question for each RRset that is declared, or was, and what nobody declares is not known.
	//
	// +optional
	// +kubebuilder:default=Transfer
	ReadBy ReadMethod `json:"readBy,omitempty"`

	// Writers says who else writes to the zones: Exclusive means nobody who matters, and Lockstep sets the serials; each update
	// is a compare-and-swap on the SOA. With Shared, others write as well: each RRset is compared and swapped by itself, the server
	// counts the serial, and the SOA, the NS records at the apex and what no object declares are left alone.
	//
	// +optional
	// +kubebuilder:default=Exclusive
	Writers WriterMode `json:"writers,omitempty"`

	// Ownership says what of a name belongs to this provider if writers is Shared: Names means that the RRsets that objects declare are theirs
	// as a whole. With Values, other installations may have values in the same RRsets: each has its own, keeps what the others have, and takes
	// away its own only. Whose they are is kept in the zone, in TXT records at and below _lockstep.
	//
	// +optional
	// +kubebuilder:default=Names
	Ownership OwnershipMode `json:"ownership,omitempty"`

	// OwnerID names this Kubernetes cluster among those that publish in the zones, if ownership is Values: lower-case letters, digits, "-" and
	// ".". Each has another one. Defaults to the UID of the namespace kube-system. The provider's namespace and name are added to it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	OwnerID string `json:"ownerID,omitempty"`

	// Zones says that the zones exist on the servers: Lockstep never creates or deletes one.
	//
	// +optional
	// +kubebuilder:default=Existing
	// +kubebuilder:validation:Enum=Existing
	Zones string `json:"zones,omitempty"`
}

// ReadMethod is how the content of a zone is read.
//
// +kubebuilder:validation:Enum=Transfer;Query
type ReadMethod string

// The methods.
const (
	// ReadByTransfer: AXFR and IXFR.
	ReadByTransfer ReadMethod = "Transfer"
	// ReadByQuery: a query for each RRset.
	ReadByQuery ReadMethod = "Query"
)

// WriterMode says who writes to the zones of a provider.
//
// +kubebuilder:validation:Enum=Exclusive;Shared
type WriterMode string

// The modes.
const (
	// WritersExclusive: nobody else; we set the serial.
	WritersExclusive WriterMode = "Exclusive"
	// WritersShared: others, too; the server sets the serial.
	WritersShared WriterMode = "Shared"
)

// OwnershipMode says what of a name belongs to one of several writers.
//
// +kubebuilder:validation:Enum=Names;Values
type OwnershipMode string

// The modes.
const (
	// OwnershipNames: the RRsets that are declared, as a whole.
	OwnershipNames OwnershipMode = "Names"
	// OwnershipValues: the values that are declared.
	OwnershipValues OwnershipMode = "Values"
)

// ProviderServer is where a server answers.
type ProviderServer struct {
	// Address of the server: an IP address or a host name. A host name is looked up every minute.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="isIP(self) || self.matches('^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?([.][A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*[.]?$')",message="address must be an IP address or a host name, without a port: port has that"
	// +kubebuilder:validation:XValidation:rule="!isIP(self) || ip.isCanonical(self)",message="address must be written in the canonical form of IP addresses, for example 2001:db8::1"
	// +kubebuilder:validation:XValidation:rule="!isIP(self) || ip(self).isGlobalUnicast()",message="address must be one that the controller can reach: no loopback, link-local, multicast or unspecified address"
	Address string `json:"address"`

	// Port of the server, for UDP and TCP.
	//
	// +optional
	// +kubebuilder:default=53
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// ProviderKey is a TSIG key.
type ProviderKey struct {
	// SecretRef names the Secret with the key. Its entries are name, algorithm (hmac-sha256 if absent) and secret (in base64); or
	// one entry with a key statement of named.conf, as tsig-keygen prints it.
	SecretRef ProviderSecret `json:"secretRef"`
}

// ProviderSecret names a Secret of the provider's namespace.
type ProviderSecret struct {
	// Name of the Secret.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// CoreDNSProvider is CoreDNS with the plugin etcd, which reads records in the layout of SkyDNS.
type CoreDNSProvider struct {
	// Etcd is where the records are kept.
	Etcd EtcdStore `json:"etcd"`

	// Servers are where CoreDNS answers: each replica is asked.
	//
	// +optional
	Servers CoreDNSServers `json:"servers,omitempty"`
}

// EtcdStore is an etcd with the records of CoreDNS.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.credentialsSecretRef) || has(self.tlsSecretRef)) || self.endpoints.all(e, e.startsWith('https://'))",message="with credentialsSecretRef or tlsSecretRef all endpoints must begin with https://: over http, anybody on the way could read user, password and records, or answer in place of etcd"
type EtcdStore struct {
	// Endpoints of etcd, for example "https://etcd.dns.svc.cluster.local:2379".
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^https?://[^/\s]+$`
	Endpoints []string `json:"endpoints"`

	// Prefix of the keys: the path of the plugin.
	//
	// +optional
	// +kubebuilder:default="/skydns"
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^(/[^/\s]+)+$`
	Prefix string `json:"prefix,omitempty"`

	// TLSSecretRef names a Secret with ca.crt and, for a client certificate, tls.crt and tls.key.
	//
	// +optional
	TLSSecretRef *ProviderSecret `json:"tlsSecretRef,omitempty"`

	// CredentialsSecretRef names a Secret with username and password. They are sent by https only, to a server with a certificate
	// for its name.
	//
	// +optional
	CredentialsSecretRef *ProviderSecret `json:"credentialsSecretRef,omitempty"`
}

// CoreDNSServers are the replicas of CoreDNS: those of a Service, or addresses.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.service) && has(self.addresses))",message="servers must not have both service and addresses: leave out one of the two"
type CoreDNSServers struct {
	// Service of the provider's namespace whose endpoints are the replicas.
	//
	// +optional
	Service *ServiceReference `json:"service,omitempty"`

	// Addresses of the replicas.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Addresses []ProviderServer `json:"addresses,omitempty"`
}

// ServiceReference names a Service whose endpoints answer DNS.
type ServiceReference struct {
	// Name of the Service.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Namespace of the Service: that of the provider, which is the default.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// Port on which the endpoints answer DNS, over UDP and TCP: the targetPort of the Service.
	//
	// +optional
	// +kubebuilder:default=53
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// SecondariesProvider are servers that transfer zones from the primaries that Lockstep runs, for example an ISP's.
type SecondariesProvider struct {
	// Servers that transfer the zones. They are notified and asked.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Servers []ProviderServer `json:"servers"`

	// TransferKey is the TSIG key with which the servers transfer the zones, and with which they are notified and asked. Its
	// name must be <provider>.<namespace>.secondary.lockstep: no other key on the primaries can have that. Without a key, the servers
	// transfer by their addresses and are notified without a signature, and what they hold is not read.
	//
	// +optional
	TransferKey *ProviderKey `json:"transferKey,omitempty"`

	// ReadBy says how what the servers hold is read: Transfer (AXFR and IXFR), or Query where they let nobody transfer it: then there is
	// a question for each RRset that is declared, and what nobody declares is not known.
	//
	// +optional
	// +kubebuilder:default=Transfer
	ReadBy ReadMethod `json:"readBy,omitempty"`
}

// DNSProviderStatus is what the controller observed about a provider.
type DNSProviderStatus struct {
	// Conditions of the provider. Ready: zones can be brought to it. Reachable: all of its servers answer. Authenticated: they
	// accept the keys.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Type of the provider: rfc2136, coreDNS or secondaries.
	//
	// +optional
	Type string `json:"type,omitempty"`

	// ZonesCount is the number of zones that name the provider.
	//
	// +optional
	ZonesCount int32 `json:"zonesCount"`

	// Servers of the provider.
	//
	// +optional
	// +listType=atomic
	Servers []ProviderServerStatus `json:"servers,omitempty"`

	// Owner is the name under which the provider's values are kept in the zones, if ownership is Values.
	//
	// +optional
	Owner string `json:"owner,omitempty"`

	// Capabilities of the provider: what its servers were found to do with one of its zones, not what is configured. Absent until a server
	// has served one.
	//
	// +optional
	Capabilities *ProviderCapabilities `json:"capabilities,omitempty"`
}

// ProviderServerStatus is what was observed of a server.
type ProviderServerStatus struct {
	// Address and port of the server, as the provider has them.
	Address string `json:"address"`
	// IP is the address in use: that of the host name, if the provider has one.
	//
	// +optional
	IP string `json:"ip,omitempty"`
	// Role of the server: Primary or Secondary.
	Role string `json:"role"`
	// Reachable is true if the server answers.
	Reachable bool `json:"reachable"`
	// Authenticated is true if the server accepts the keys. CoreDNS has none.
	Authenticated bool `json:"authenticated"`
	// Software is what the server says that it is; empty if it says nothing.
	//
	// +optional
	Software string `json:"software,omitempty"`
	// Message says what is wrong, in the server's own words, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// ProviderCapabilities is what a provider can do. Serial, transfer and atomic were found, by asking and without writing. The others
// follow from the provider's type: nobody can ask a server for them.
type ProviderCapabilities struct {
	// RecordTypes that it can hold, by its type. Absent if it can hold all.
	//
	// +optional
	// +listType=atomic
	RecordTypes []string `json:"recordTypes,omitempty"`
	// Serial is true if its primaries answered with a serial that changes with the content of a zone. CoreDNS with etcd has none.
	Serial bool `json:"serial"`
	// Transfer is true if its primaries transferred a zone.
	Transfer bool `json:"transfer"`
	// Atomic is true if its primaries refused an update whose condition does not hold, so that each update is a compare-and-swap, and
	// false if one of them took it. Absent if a primary refuses every update. With coreDNS it is true: etcd's transactions have conditions.
	//
	// +optional
	Atomic *bool `json:"atomic,omitempty"`
	// Wildcards is true if it can hold wildcards, by its type.
	Wildcards bool `json:"wildcards"`
	// Delegations is true if it can hold NS records below the apex, by its type.
	Delegations bool `json:"delegations"`
}

// ProviderReference names a DNSProvider of the zone's namespace.
type ProviderReference struct {
	// Name of the DNSProvider.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// DNSProviderList is a list of DNSProvider objects.
//
// +kubebuilder:object:root=true
type DNSProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DNSProvider `json:"items"`
}

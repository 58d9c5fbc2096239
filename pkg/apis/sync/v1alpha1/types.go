package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SyncStatus reports whether every authoritative server serves, at the time of the request, what an object declares.
// There is one for each DNSZone, record, DNSEndpoint, Bind9Instance and cluster of any kind. Its name is the object's kind
// in lower case, a dot and the object's name, for example arecord.www. The SyncStatus of a cluster-scoped cluster is in the
// namespace of its instances. It is computed from the servers' own answers and never stored.
//
// +kubebuilder:object:root=true
type SyncStatus struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata. Labels, generation and creation time are those of the object that this is about. The
	// resourceVersion changes when the verdict or its evidence changes. Times, serials and round trips of an unchanged
	// verdict are refreshed without a new resourceVersion.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The object that this is about.
	ObjectRef ObjectReference `json:"objectRef"`
	// DNS name of the zone that the object belongs to, without the final dot; for a DNSEndpoint with names in several
	// zones, all of them separated by commas. Empty for a record that no zone selects, and for instances and clusters.
	// +optional
	Zone string `json:"zone,omitempty"`
	// The verdict. Everything else is the evidence for it.
	// +optional
	Status SyncStatusStatus `json:"status,omitempty"`
	// What the servers should serve: the complete RRset at each name and type that the object declares, including
	// values of other objects at the same name and type. An entry without data must not exist, for example because its
	// object is being deleted. A zone shows only the RRsets that appear in servers.observed and counts the others; see
	// servers.records.
	// +optional
	// +listType=atomic
	RRsets []RRset `json:"rrsets,omitempty"`
	// One row for each authoritative server of the zone (of each zone for a DNSEndpoint), primaries first. An expected pod
	// that does not exist or does not answer has a row that says so.
	// +optional
	// +listType=atomic
	Servers []ServerStatus `json:"servers,omitempty"`
	// For a zone: its name servers according to the NS records on its servers, and where they lead as far as is known. They
	// do not affect the verdict. At most 20 are shown.
	// +optional
	// +listType=atomic
	NameServers []NameServer `json:"nameServers,omitempty"`
	// For a zone: what clients get who ask its servers without a key, on each way that is known. The Services of its instances are
	// always asked; the other ways when the SyncStatus of the zone is requested by name, and for as long as somebody watches it
	// then. What is seen from elsewhere than the API server has a vantage.
	// +optional
	// +listType=atomic
	Paths []Path `json:"paths,omitempty"`
	// For what is in a signed zone, when it is requested by name: the chain from the keys that are trusted to the answers of each
	// server, from the top.
	// +optional
	// +listType=atomic
	Chain []ChainLink `json:"chain,omitempty"`
	// Counts over the rows of servers.
	// +optional
	Summary Summary `json:"summary,omitempty"`
	// When the servers were queried: the time of the oldest answer on which the verdict is based.
	// +optional
	ObservedAt *metav1.MicroTime `json:"observedAt,omitempty"`
	// When the last resolver that cached the previous answer must have dropped it. Until then clients can see the
	// previous data although every server is in sync. Only set if it is known and in the future.
	// +optional
	CachesExpireAt *metav1.Time `json:"cachesExpireAt,omitempty"`
}

// SyncStatusList is a list of SyncStatus objects.
//
// +kubebuilder:object:root=true
type SyncStatusList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// The objects, sorted by namespace and name.
	Items []SyncStatus `json:"items"`
}

// ObjectReference identifies the object that a SyncStatus is about, and the generation of it that was evaluated.
type ObjectReference struct {
	// API version of the object: bindy.firestoned.io/v1beta1, or externaldns.k8s.io/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind of the object, for example ARecord.
	Kind string `json:"kind"`
	// Namespace of the object. Empty for a cluster-scoped one.
	Namespace string `json:"namespace"`
	// Name of the object.
	Name string `json:"name"`
	// UID of the object.
	UID types.UID `json:"uid"`
	// Generation of the object's spec that was evaluated.
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// SyncStatusStatus is the verdict.
type SyncStatusStatus struct {
	// The verdict in one word. InSync: every server serves what is declared. Propagating: the change is on its way; wait.
	// OutOfSync: a server does not serve it, and waiting will not help. Failed: a person has to act on the object; see
	// failureReason. Unknown: no server could be queried.
	Phase Phase `json:"phase"`
	// True if and only if phase is InSync.
	InSync bool `json:"inSync"`
	// Set when a person has to act on the object: the reason as one CamelCase word.
	// +optional
	FailureReason string `json:"failureReason,omitempty"`
	// Set with failureReason: the problem in a sentence.
	// +optional
	FailureMessage string `json:"failureMessage,omitempty"`
	// Accepted: the declaration is valid and part of its zone. Programmed: the primaries were queried and serve it.
	// Propagated: every authoritative server was queried and serves it, and a validating resolver accepts its answers. Validated: a
	// validating resolver accepts the answers of every server. Delegated, for a zone below another one that is served
	// here: what the parent has agrees with the zone; the phase does not depend on it. Answered, for a zone: the
	// Service of each of its instances answers clients, and so does each published address that was asked; see paths. Nothing is
	// Propagated where a Service does not. For instances and
	// clusters there are Ready (every expected pod is ready) and Propagated (each pod also serves its zones at the serials of their primaries).
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Phase is the verdict in one word.
// +enum
type Phase string

const (
	// PhaseInSync means that every authoritative server serves what is declared.
	PhaseInSync Phase = "InSync"
	// PhasePropagating means that the declaration is on its way to the servers.
	PhasePropagating Phase = "Propagating"
	// PhaseOutOfSync means that a server does not serve what is declared, and waiting will not help.
	PhaseOutOfSync Phase = "OutOfSync"
	// PhaseFailed means that a person has to act on the object.
	PhaseFailed Phase = "Failed"
	// PhaseUnknown means that no server could be queried.
	PhaseUnknown Phase = "Unknown"
)

// Condition types of a SyncStatus.
const (
	// ConditionAccepted: the declaration is valid and part of its zone.
	ConditionAccepted = "Accepted"
	// ConditionProgrammed: the primaries were queried and serve the declaration.
	ConditionProgrammed = "Programmed"
	// ConditionPropagated: every authoritative server was queried and serves the declaration.
	ConditionPropagated = "Propagated"
	// ConditionValidated: a validating resolver accepts the answers of every server, as Secure or, if the zone is not signed, as
	// Insecure.
	ConditionValidated = "Validated"
	// ConditionAnswered, for a zone: clients get an answer from the Service of each of its instances, and on each other path that
	// leads to a published address and was asked.
	ConditionAnswered = "Answered"
	// ConditionDelegated, for a zone of which a parent is known: its NS, glue and DS records are what the zone asks for.
	ConditionDelegated = "Delegated"
	// ConditionReady, for instances and clusters: every expected pod is ready.
	ConditionReady = "Ready"
)

// RRset is the data at one owner name and type.
type RRset struct {
	// Owner name, absolute and in lower case, with the final dot.
	Name string `json:"name"`
	// DNS type, for example A.
	Type string `json:"type"`
	// Time to live in seconds. Not set if there is no data.
	// +optional
	TTL *int64 `json:"ttl,omitempty"`
	// Data in canonical presentation form, sorted. Empty if the RRset does not exist or must not exist.
	// +optional
	// +listType=atomic
	Rdata []string `json:"rdata,omitempty"`
	// How many values more the server has, of which rdata has only the first, or none: values of a server that is not as declared are shown
	// up to 64 KiB.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
}

// ServerStatus is what one authoritative server answered.
type ServerStatus struct {
	// Name of the Bind9Instance. Empty for a server of a provider.
	Instance string `json:"instance"`
	// Namespace of the Bind9Instance, if it is not that of the object.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the DNSProvider, for a server that Lockstep does not run.
	// +optional
	Provider string `json:"provider,omitempty"`
	// Name of the pod. Empty for a server of a provider.
	Pod string `json:"pod"`
	// For a DNSEndpoint, which can have names in several zones: DNS name of the zone that this row is about, without the
	// final dot.
	// +optional
	Zone string `json:"zone,omitempty"`
	// Query for a server that is not asked for its whole zone, but for the RRsets in question: what nobody declares there is not
	// known. Empty for one whose zone is transferred.
	// +optional
	ReadBy string `json:"readBy,omitempty"`
	// Address and port that were queried. Empty while the server has no address.
	// +optional
	Address string `json:"address,omitempty"`
	// Primary or Secondary, as the instance is declared. In a signed zone, primaries that follow the one that signs are
	// Primary as well.
	Role string `json:"role"`
	// Phase of the pod. Empty if the pod does not exist, and for a server of a provider.
	// +optional
	PodPhase corev1.PodPhase `json:"podPhase,omitempty"`
	// Whether the pod is ready.
	PodReady bool `json:"podReady"`
	// What the answers show. InSync: the server serves what is declared. Stale: an older serial, or a change that has not
	// been programmed yet; wait. Held: the zone's guard holds the change back until somebody confirms it. Missing: the
	// current serial without the RRset. Divergent: the current serial with other data, or a serial ahead of the primaries', which no transfer will repair. Shadowed: the data is there, but the server
	// answers something else, for example from a zone below; see shadowedBy. Bogus: validating resolvers reject the answers; see
	// securityCause. NotLoaded: the zone is configured but has
	// no data (SERVFAIL) because it was never transferred, has expired or is broken. Lame: an answer without authority.
	// Refused: the server refuses the query. Unreachable: no answer.
	State ServerState `json:"state"`
	// What a validating resolver makes of this server's answers. Secure: it accepts them as proven. Expiring: so it does, and a
	// signature expires soon. Insecure: it accepts them without proof, because the zone is not signed, or its parent has no DS record.
	// Bogus: it rejects them. Unknown: that could not be determined; the message says why if the server answers. Empty for instances
	// and clusters.
	// +optional
	Security Security `json:"security,omitempty"`
	// For Bogus: the cause, in the words of the extended DNS errors (RFC 8914), for example Signature Expired. The message has the
	// details.
	// +optional
	SecurityCause string `json:"securityCause,omitempty"`
	// When the first of the signatures expires on which security rests; for a zone, the first of all its signatures.
	// +optional
	SignaturesExpireAt *metav1.Time `json:"signaturesExpireAt,omitempty"`
	// Tags of the keys of these signatures, in ascending order.
	// +optional
	// +listType=atomic
	KeyTags []int32 `json:"keyTags,omitempty"`
	// Serial of the zone on this server. Not set if it is unknown.
	// +optional
	Serial *int64 `json:"serial,omitempty"`
	// How many serials this server is behind the newest of the primaries (RFC 1982). Negative if it is ahead.
	// +optional
	SerialLag *int64 `json:"serialLag,omitempty"`
	// When this API server first saw this server behind. Only set while it is behind.
	// +optional
	BehindSince *metav1.MicroTime `json:"behindSince,omitempty"`
	// For a secondary: when it will stop answering for the zone unless it reaches a primary, according to the server itself
	// (EDNS EXPIRE, RFC 7314). Each contact with a primary postpones it.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// Response code of the answer, for example NOERROR. Empty when there was none.
	// +optional
	Rcode string `json:"rcode,omitempty"`
	// Whether the answer had the AA bit.
	Authoritative bool `json:"authoritative"`
	// The RRsets that differ from what is declared, as this server has them; without data if they are missing.
	// At most 20 are shown.
	// +optional
	// +listType=atomic
	Observed []RRset `json:"observed,omitempty"`
	// For Shadowed: DNS name of the zone that the server answers from instead, without the final dot. Empty if unknown.
	// +optional
	ShadowedBy string `json:"shadowedBy,omitempty"`
	// For a zone: how many RRsets this server serves as declared, and how many it does not.
	// +optional
	Records *RecordCounts `json:"records,omitempty"`
	// For an instance or a cluster: the state of the zones of this server.
	// +optional
	Zones *ServerZones `json:"zones,omitempty"`
	// For an instance or a cluster: how often containers of the pod were restarted.
	// +optional
	Restarts int32 `json:"restarts,omitempty"`
	// For an instance or a cluster: version of BIND as the server reports it. Empty if it does not.
	// +optional
	Version string `json:"version,omitempty"`
	// For an instance or a cluster: Ready if the pod's sidecar and its named answer, otherwise the reason why not, for
	// example BindcarUnreachable. Empty if the sidecar was not queried.
	// +optional
	Sidecar string `json:"sidecar,omitempty"`
	// Round-trip time of the query, for example 412µs.
	// +optional
	RTT *metav1.Duration `json:"rtt,omitempty"`
	// When this server answered; if it is read by query, the oldest answer that this row is based on.
	// +optional
	ObservedAt *metav1.MicroTime `json:"observedAt,omitempty"`
	// Explanation of this row in a sentence. Empty if the server is in sync, and everything was compared.
	// +optional
	Message string `json:"message,omitempty"`
}

// ServerName is the server's name for people: the pod's or, of a provider's server, provider/address.
func (s *ServerStatus) ServerName() string {
	switch {
	case s.Provider == "":
		return s.Pod
	case s.Address == "":
		return s.Provider
	}
	return s.Provider + "/" + s.Address
}

// ServerZones is the state of the zones of one server.
type ServerZones struct {
	// Zones that the server serves; for a secondary, at the serial of the primaries.
	InSync int32 `json:"inSync"`
	// Zones that it does not serve, or serves at another serial.
	OutOfSync int32 `json:"outOfSync"`
	// The zones, worst first. At most 20 are shown.
	// +optional
	// +listType=atomic
	Worst []ServerZone `json:"worst,omitempty"`
}

// ServerZone is one zone on one server.
type ServerZone struct {
	// DNS name of the zone, without the final dot.
	Zone string `json:"zone"`
	// What the server's answer shows; see servers.state. Content is not compared here; see the SyncStatus of the zone.
	State ServerState `json:"state"`
	// Serial of the zone on this server. Not set if it is unknown.
	// +optional
	Serial *int64 `json:"serial,omitempty"`
	// How many serials this server is behind the newest of any primary (RFC 1982). Not set if either is unknown.
	// +optional
	SerialLag *int64 `json:"serialLag,omitempty"`
	// Explanation in a sentence. Empty if the zone is in sync.
	// +optional
	Message string `json:"message,omitempty"`
}

// ServerState is the state of a server as its answers show it.
// +enum
type ServerState string

const (
	// StateInSync means that the server serves what is declared.
	StateInSync ServerState = "InSync"
	// StateStale means an older serial, or a change that has not been programmed yet: wait.
	StateStale ServerState = "Stale"
	// StateHeld means that the zone's guard holds back what is declared, until somebody confirms it.
	StateHeld ServerState = "Held"
	// StateMissing means the current serial without the RRset.
	StateMissing ServerState = "Missing"
	// StateDivergent means other data at the current serial, or a serial ahead of the primaries'.
	StateDivergent ServerState = "Divergent"
	// StateShadowed means that the server holds the RRset and answers something else.
	StateShadowed ServerState = "Shadowed"
	// StateBogus means that validating resolvers reject the server's answers.
	StateBogus ServerState = "Bogus"
	// StateNotLoaded means that the zone is configured on the server but has no data (SERVFAIL).
	StateNotLoaded ServerState = "NotLoaded"
	// StateLame means an answer without authority for the zone.
	StateLame ServerState = "Lame"
	// StateRefused means that the server refuses to answer for the zone or to transfer it.
	StateRefused ServerState = "Refused"
	// StateUnreachable means no answer.
	StateUnreachable ServerState = "Unreachable"
	// StateUnknown means, of a path, that it was not asked: there is no answer yet, or the address may not be asked; or that it answers
	// with a newer serial, and the servers were not asked since.
	StateUnknown ServerState = "Unknown"
)

// Security is what a validating resolver makes of answers (RFC 4033 section 5).
// +enum
type Security string

const (
	// SecuritySecure means accepted, and proven.
	SecuritySecure Security = "Secure"
	// SecurityExpiring means Secure, but not for long.
	SecurityExpiring Security = "Expiring"
	// SecurityInsecure means accepted, but not proven.
	SecurityInsecure Security = "Insecure"
	// SecurityBogus means rejected.
	SecurityBogus Security = "Bogus"
	// SecurityUnknown means that it could not be determined.
	SecurityUnknown Security = "Unknown"
)

// ChainLink is one link of the chain from the keys that are trusted to an answer: an RRset, and the verdict about its signature.
type ChainLink struct {
	// The server that has it: a pod or, of a provider, provider/address. Empty for the newest content of a zone above.
	// +optional
	Server string `json:"server,omitempty"`
	// Owner name of the RRset, absolute and in lower case, with the final dot.
	Name string `json:"name"`
	// Type of the RRset, for example DNSKEY.
	Type string `json:"type"`
	// For DNSKEY, what vouches for the keys. TrustAnchor: a configured trust anchor. ParentDS: the DS records of the parent zone.
	// OwnKeys: nothing that is known here; they are trusted as they are.
	// +optional
	TrustedBy string `json:"trustedBy,omitempty"`
	// For DNSKEY and DS: the keys, and those that DS records name.
	// +optional
	// +listType=atomic
	Keys []ChainKey `json:"keys,omitempty"`
	// What a validating resolver makes of the RRset; see servers.security.
	Security Security `json:"security"`
	// For Bogus: the cause; see servers.securityCause.
	// +optional
	SecurityCause string `json:"securityCause,omitempty"`
	// When the first of the signatures expires.
	// +optional
	SignaturesExpireAt *metav1.Time `json:"signaturesExpireAt,omitempty"`
	// Tags of the keys of the signatures, in ascending order.
	// +optional
	// +listType=atomic
	KeyTags []int32 `json:"keyTags,omitempty"`
	// Why the RRset is not Secure, and what of the chain above it could not be reached.
	// +optional
	Message string `json:"message,omitempty"`
}

// ChainKey is a key of a zone, or a DS record that names one.
type ChainKey struct {
	// Key tag (RFC 4034 appendix B).
	KeyTag int32 `json:"keyTag"`
	// Algorithm, for example ECDSAP256SHA256.
	Algorithm string `json:"algorithm"`
	// For DNSKEY: KSK if the key has the SEP flag, else ZSK. For DS: the type of the digest, for example SHA256.
	Role string `json:"role"`
}

// RecordCounts counts the RRsets of a zone on one server.
type RecordCounts struct {
	// RRsets that the server serves as declared.
	InSync int32 `json:"inSync"`
	// RRsets that it serves with other data, or not at all.
	OutOfSync int32 `json:"outOfSync"`
	// RRsets on the server that no object declares, without the SOA and DNSSEC's own records.
	// +optional
	Undeclared int32 `json:"undeclared,omitempty"`
	// Of a server that is read by query: RRsets that it was not asked about lately, or did not answer for. The others are as it
	// answered at observedAt or later.
	// +optional
	Unknown int32 `json:"unknown,omitempty"`
}

// NameServer is one name in the NS records of a zone.
type NameServer struct {
	// Host name, absolute and in lower case, with the final dot.
	Name string `json:"name"`
	// Its addresses, if the zone itself holds them.
	// +optional
	// +listType=atomic
	Addresses []string `json:"addresses,omitempty"`
	// Where the addresses lead. Server: one of them belongs to a pod, or to an instance's Service, that serves this zone.
	// Nowhere: the name is inside the zone and has no address. Unknown: cannot be determined, for example for a name
	// outside the zone or for the address of a load balancer.
	LeadsTo NameServerTarget `json:"leadsTo"`
	// The instances whose pods or Services have one of the addresses; <namespace>/<name> for an instance outside the zone's
	// namespace.
	// +optional
	// +listType=atomic
	Instances []string `json:"instances,omitempty"`
	// The pods, and servers of providers, whose NS records lack the name although others have it.
	// +optional
	// +listType=atomic
	MissingOn []string `json:"missingOn,omitempty"`
	// Explanation in a sentence. Empty if the name leads to a server and no server lacks it.
	// +optional
	Message string `json:"message,omitempty"`
}

// NameServerTarget is where the addresses of a name server lead.
// +enum
type NameServerTarget string

const (
	// TargetServer means a server of this zone.
	TargetServer NameServerTarget = "Server"
	// TargetNowhere means a name inside the zone that has no address.
	TargetNowhere NameServerTarget = "Nowhere"
	// TargetUnknown means that it cannot be determined.
	TargetUnknown NameServerTarget = "Unknown"
)

// Path is a way on which clients reach servers of a zone, and what came back on it.
type Path struct {
	// Where the address is from. Service: the cluster IPs of an instance's Service. External: the addresses of its load balancer and
	// its external IPs. NodePort: the port of the Service on a node that runs a pod of it. Pod: the pod itself. Provider: the
	// server of a DNSProvider. NameServer: an address that the zone or its parent publishes for a name server, and that belongs to none of these.
	Type PathType `json:"type"`
	// Who asked: the name of a vantage. Empty for the API server itself.
	// +optional
	Vantage string `json:"vantage,omitempty"`
	// Name of the Bind9Instance that the address belongs to. Empty if it belongs to none.
	Instance string `json:"instance"`
	// Namespace of the Bind9Instance or the DNSProvider, if it is not that of the zone.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the DNSProvider that the address belongs to.
	// +optional
	Provider string `json:"provider,omitempty"`
	// The name servers in NS records of the zone, or of its parent for the zone, that have the address.
	// +optional
	// +listType=atomic
	NameServers []string `json:"nameServers,omitempty"`
	// Address and port that were asked.
	Address string `json:"address"`
	// UDP or TCP.
	Protocol corev1.Protocol `json:"protocol"`
	// InSync: an answer with authority for the zone and, of all but type Service, with the SOA record of one of its servers. Stale: the
	// answer has an older serial. Divergent: a serial that no server has, or another SOA record with the same serial. Unknown: not
	// asked, or newer than what the servers had a moment before; the message says why. The others as in servers.state. Refused can mean that allowQuery does not admit the one
	// who asked: then it is not known what clients get.
	State ServerState `json:"state"`
	// What the server that answered calls itself: its NSID (RFC 5001), or what it answers for id.server (RFC 4892). Empty if it does
	// not say, as servers of Lockstep do not.
	// +optional
	Server string `json:"server,omitempty"`
	// Serial in the answer.
	// +optional
	Serial *int64 `json:"serial,omitempty"`
	// Response code of the answer, for example NOERROR. Empty when there was none.
	// +optional
	Rcode string `json:"rcode,omitempty"`
	// Round-trip time of the query.
	// +optional
	RTT *metav1.Duration `json:"rtt,omitempty"`
	// When the query was sent. A Service that answers is asked again within 30 seconds, and within a second about one of the zones
	// that it serves.
	// +optional
	ObservedAt *metav1.MicroTime `json:"observedAt,omitempty"`
	// Explanation in a sentence. Empty if there was an answer with authority.
	// +optional
	Message string `json:"message,omitempty"`
}

// PathType is where the address of a path is from.
// +enum
type PathType string

const (
	// PathService is the address of an instance's Service in the Kubernetes cluster.
	PathService PathType = "Service"
	// PathExternal is an address of the Service's load balancer, or one of its external IPs.
	PathExternal PathType = "External"
	// PathNodePort is the port of the Service on a node.
	PathNodePort PathType = "NodePort"
	// PathPod is the address of a pod.
	PathPod PathType = "Pod"
	// PathProvider is the address of a server of a DNSProvider.
	PathProvider PathType = "Provider"
	// PathNameServer is an address that is published for a name server, and of none of the above.
	PathNameServer PathType = "NameServer"
)

// Summary counts servers by state.
type Summary struct {
	// Authoritative servers of the zone; for an instance or cluster, its expected pods.
	Servers int32 `json:"servers"`
	// Servers in sync; for an instance or cluster, the ready pods whose zones are in sync.
	InSync int32 `json:"inSync"`
	// Servers that did not answer.
	Unreachable int32 `json:"unreachable"`
	// For a zone: RRsets declared.
	// +optional
	Records int32 `json:"records,omitempty"`
	// For a zone: RRsets that at least one server does not serve as declared.
	// +optional
	RecordsOutOfSync int32 `json:"recordsOutOfSync,omitempty"`
}

// TrackedObject represents an object of another group as the parent of the subresource syncstatus. It is never served
// itself: the object is in group bindy.firestoned.io or externaldns.k8s.io.
//
// +kubebuilder:object:root=true
type TrackedObject struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

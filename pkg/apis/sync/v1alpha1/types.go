package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SyncStatus tells, at the moment of asking, whether every authoritative server serves what an object declares. There
// is one for each DNSZone, each record, each DNSEndpoint, each Bind9Instance and each cluster of any kind; its name is the object's
// kind in lower case, a dot and the object's name: arecord.www. That of a cluster-scoped cluster is in the namespace of its
// instances. It is computed from the servers' own answers and never stored.
//
// +kubebuilder:object:root=true
type SyncStatus struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata. Labels, generation and creation time are those of the object that this is about. The
	// resourceVersion changes when the verdict or its evidence changes; times, serials and round trips of an unchanged
	// verdict are refreshed without a new one.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The object that this is about.
	ObjectRef ObjectReference `json:"objectRef"`
	// DNS name of the zone that the object belongs to, without the final dot; for a DNSEndpoint with names in several
	// zones all of them, separated by commas. Empty for a record that no zone selects, and for instances and clusters.
	// +optional
	Zone string `json:"zone,omitempty"`
	// The verdict. Everything else is the evidence for it.
	// +optional
	Status SyncStatusStatus `json:"status,omitempty"`
	// What the servers should serve: the complete RRset at each name and type that the object declares, values of
	// other objects at the same name and type included. An entry without data is one that must not exist, for example
	// that of an object being deleted. A zone shows those that are in servers.observed, and counts the others; see
	// servers.records.
	// +optional
	// +listType=atomic
	RRsets []RRset `json:"rrsets,omitempty"`
	// One row for each authoritative server of the zone, of each zone for a DNSEndpoint: primaries first. An expected pod that does not exist, or
	// that does not answer, has a row that says so.
	// +optional
	// +listType=atomic
	Servers []ServerStatus `json:"servers,omitempty"`
	// For a zone: its name servers as the NS records on its servers publish them, and what is known of where they lead. No
	// verdict follows from it. At most 20 are shown.
	// +optional
	// +listType=atomic
	NameServers []NameServer `json:"nameServers,omitempty"`
	// The rows of servers, counted.
	// +optional
	Summary Summary `json:"summary,omitempty"`
	// When the servers were asked: the oldest of the answers that the verdict rests on.
	// +optional
	ObservedAt *metav1.MicroTime `json:"observedAt,omitempty"`
	// When the last resolver that cached the previous answer must have dropped it. Until then clients can see the
	// previous data although every server is in step. Only set when it lies ahead and is known.
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

// ObjectReference names the object that a SyncStatus is about, and the version of it that was judged.
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
	// Generation of the object's spec that was judged.
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// SyncStatusStatus is the verdict.
type SyncStatusStatus struct {
	// The verdict in one word. InSync: every server serves what is declared. Propagating: on its way, waiting helps.
	// OutOfSync: a server does not serve it and time alone will not change that. Failed: a person has to act on the
	// object, see failureReason. Unknown: no server could be asked.
	Phase Phase `json:"phase"`
	// True when, and only when, phase is InSync.
	InSync bool `json:"inSync"`
	// Set when a person has to act on the object: why, in one CamelCase word.
	// +optional
	FailureReason string `json:"failureReason,omitempty"`
	// Set with failureReason: what is wrong, in a sentence.
	// +optional
	FailureMessage string `json:"failureMessage,omitempty"`
	// Accepted: the declaration is valid and part of its zone. Programmed: the primaries were asked and serve it.
	// Propagated: every authoritative server was asked and serves it. For instances and clusters Ready: every expected pod
	// is ready; and Propagated: each serves its zones, at the serials of their primaries.
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
	// PhasePropagating means that the declaration is on its way: waiting helps.
	PhasePropagating Phase = "Propagating"
	// PhaseOutOfSync means that a server does not serve what is declared and time alone will not change that.
	PhaseOutOfSync Phase = "OutOfSync"
	// PhaseFailed means that a person has to act on the object.
	PhaseFailed Phase = "Failed"
	// PhaseUnknown means that no server could be asked.
	PhaseUnknown Phase = "Unknown"
)

// Condition types of a SyncStatus.
const (
	// ConditionAccepted tells whether the declaration is valid and part of its zone.
	ConditionAccepted = "Accepted"
	// ConditionProgrammed tells whether the primaries were asked and serve the declaration.
	ConditionProgrammed = "Programmed"
	// ConditionPropagated tells whether every authoritative server was asked and serves the declaration.
	ConditionPropagated = "Propagated"
	// ConditionReady is for instances and clusters: every expected pod is ready.
	ConditionReady = "Ready"
)

// RRset is the data at one owner name and type.
type RRset struct {
	// Owner name, absolute and in lower case, with the final dot.
	Name string `json:"name"`
	// DNS type, for example A.
	Type string `json:"type"`
	// Time to live in seconds. Not set when there is no data.
	// +optional
	TTL *int64 `json:"ttl,omitempty"`
	// Data in canonical presentation form, sorted. Empty when the RRset does not exist, or must not.
	// +optional
	// +listType=atomic
	Rdata []string `json:"rdata,omitempty"`
}

// ServerStatus is what one authoritative server answered.
type ServerStatus struct {
	// Name of the Bind9Instance.
	Instance string `json:"instance"`
	// Namespace of the Bind9Instance, when it is not that of the object.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the pod.
	Pod string `json:"pod"`
	// For a DNSEndpoint, which can have names in several zones: DNS name of the zone that this row is about, without the
	// final dot.
	// +optional
	Zone string `json:"zone,omitempty"`
	// Address and port that was asked. Empty while the pod has no address.
	// +optional
	Address string `json:"address,omitempty"`
	// Primary or Secondary, as the instance is declared. In a signed zone, primaries that follow the one that signs are
	// Primary as well.
	Role string `json:"role"`
	// Phase of the pod. Empty when the pod does not exist.
	// +optional
	PodPhase corev1.PodPhase `json:"podPhase,omitempty"`
	// Whether the pod is ready.
	PodReady bool `json:"podReady"`
	// What the answers show. InSync: serves what is declared. Stale: an older serial, or a change that has not been
	// programmed yet; wait. Missing: the current serial without the RRset. Divergent: the current serial with other
	// data, or a serial ahead of the primaries', which a transfer will never repair. NotLoaded: knows the zone but has
	// no data for it (SERVFAIL): never transferred, expired or broken. Lame: answers without authority. Refused: does
	// not serve the zone to us. Unreachable: no answer.
	State ServerState `json:"state"`
	// Serial of the zone on this server. Not set when the server did not tell.
	// +optional
	Serial *int64 `json:"serial,omitempty"`
	// How many serials this server is behind the primaries' newest (RFC 1982). 0 is level. Negative is ahead.
	// +optional
	SerialLag *int64 `json:"serialLag,omitempty"`
	// Since when this server has been behind, as far as this API server has seen. Only set while it is.
	// +optional
	BehindSince *metav1.MicroTime `json:"behindSince,omitempty"`
	// For a secondary: when it stops to answer for the zone if it does not reach a primary before, by its own word (EDNS
	// EXPIRE, RFC 7314). Each contact with a primary puts it off.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// Response code of the answer, for example NOERROR. Empty when there was none.
	// +optional
	Rcode string `json:"rcode,omitempty"`
	// Whether the answer had the AA bit.
	Authoritative bool `json:"authoritative"`
	// The RRsets on this server that differ from what is declared, as they are there; without data when missing.
	// At most 20 are shown.
	// +optional
	// +listType=atomic
	Observed []RRset `json:"observed,omitempty"`
	// For a zone: how many RRsets this server serves as declared, and how many not.
	// +optional
	Records *RecordCounts `json:"records,omitempty"`
	// For an instance or a cluster: how the zones of this server are.
	// +optional
	Zones *ServerZones `json:"zones,omitempty"`
	// For an instance or a cluster: how often containers of the pod were started again.
	// +optional
	Restarts int32 `json:"restarts,omitempty"`
	// For an instance or a cluster: version of BIND, as the server tells it. Empty when it does not.
	// +optional
	Version string `json:"version,omitempty"`
	// For an instance or a cluster: Ready when the pod's sidecar and its named answer, else the reason why not, for
	// example BindcarUnreachable. Empty when the sidecar was not asked.
	// +optional
	Sidecar string `json:"sidecar,omitempty"`
	// Round trip of the question, for example 412µs.
	// +optional
	RTT *metav1.Duration `json:"rtt,omitempty"`
	// When this server answered.
	// +optional
	ObservedAt *metav1.MicroTime `json:"observedAt,omitempty"`
	// What to know about this row, in a sentence. Empty when in step.
	// +optional
	Message string `json:"message,omitempty"`
}

// ServerZones is how the zones of one server are.
type ServerZones struct {
	// Zones that the server serves, secondaries at the serial of the primaries.
	InSync int32 `json:"inSync"`
	// Zones that it does not serve, or at another serial.
	OutOfSync int32 `json:"outOfSync"`
	// The zones, the worst first. At most 20 are shown.
	// +optional
	// +listType=atomic
	Worst []ServerZone `json:"worst,omitempty"`
}

// ServerZone is one zone on one server.
type ServerZone struct {
	// DNS name of the zone, without the final dot.
	Zone string `json:"zone"`
	// What the server's answer shows; see servers.state. Content is not compared here: that is what the SyncStatus of
	// the zone is for.
	State ServerState `json:"state"`
	// Serial of the zone on this server. Not set when the server did not tell.
	// +optional
	Serial *int64 `json:"serial,omitempty"`
	// How many serials this server is behind the newest of any primary (RFC 1982). Not set when one of them is unknown.
	// +optional
	SerialLag *int64 `json:"serialLag,omitempty"`
	// What to know about it, in a sentence. Empty when in step.
	// +optional
	Message string `json:"message,omitempty"`
}

// ServerState is what a server's answers show.
// +enum
type ServerState string

const (
	// StateInSync means that the server serves what is declared.
	StateInSync ServerState = "InSync"
	// StateStale means an older serial, or a change that has not been programmed yet: wait.
	StateStale ServerState = "Stale"
	// StateMissing means the current serial without the RRset.
	StateMissing ServerState = "Missing"
	// StateDivergent means other data at the current serial, or a serial ahead of the primaries'.
	StateDivergent ServerState = "Divergent"
	// StateNotLoaded means that the server knows the zone but has no data for it (SERVFAIL).
	StateNotLoaded ServerState = "NotLoaded"
	// StateLame means an answer without authority for the zone.
	StateLame ServerState = "Lame"
	// StateRefused means that the server does not serve the zone to us, or refuses to transfer it.
	StateRefused ServerState = "Refused"
	// StateUnreachable means no answer.
	StateUnreachable ServerState = "Unreachable"
)

// RecordCounts counts the RRsets of a zone on one server.
type RecordCounts struct {
	// RRsets that the server serves as declared.
	InSync int32 `json:"inSync"`
	// RRsets that it serves otherwise, or not at all.
	OutOfSync int32 `json:"outOfSync"`
	// RRsets on the server that nobody declares (SOA and DNSSEC's own not counted).
	// +optional
	Undeclared int32 `json:"undeclared,omitempty"`
}

// NameServer is one name in the NS records of a zone.
type NameServer struct {
	// Host name, absolute and in lower case, with the final dot.
	Name string `json:"name"`
	// Its addresses, as far as the zone itself holds them.
	// +optional
	// +listType=atomic
	Addresses []string `json:"addresses,omitempty"`
	// What the addresses lead to. Server: one of them is that of a pod, or of an instance's Service, that serves this zone.
	// Nowhere: the name is inside the zone and has no address. Unknown: neither can be said, for example of a name
	// outside the zone or of a load balancer's address.
	LeadsTo NameServerTarget `json:"leadsTo"`
	// The instances whose pods or Services have one of the addresses; <namespace>/<name> for one that is not in the zone's
	// namespace.
	// +optional
	// +listType=atomic
	Instances []string `json:"instances,omitempty"`
	// The pods whose NS records lack the name, while others' have it.
	// +optional
	// +listType=atomic
	MissingOn []string `json:"missingOn,omitempty"`
	// What to know about it, in a sentence. Empty when it leads to a server and no server lacks it.
	// +optional
	Message string `json:"message,omitempty"`
}

// NameServerTarget is what the addresses of a name server lead to.
// +enum
type NameServerTarget string

const (
	// TargetServer means a server of this zone.
	TargetServer NameServerTarget = "Server"
	// TargetNowhere means a name inside the zone that has no address.
	TargetNowhere NameServerTarget = "Nowhere"
	// TargetUnknown means that neither can be said.
	TargetUnknown NameServerTarget = "Unknown"
)

// Summary counts servers by what they showed.
type Summary struct {
	// Authoritative servers of the zone; for an instance or cluster its expected pods.
	Servers int32 `json:"servers"`
	// Servers in step; for an instance or cluster the ready pods whose zones are.
	InSync int32 `json:"inSync"`
	// Servers that gave no answer.
	Unreachable int32 `json:"unreachable"`
	// For a zone: RRsets declared.
	// +optional
	Records int32 `json:"records,omitempty"`
	// For a zone: RRsets that at least one server does not serve as declared.
	// +optional
	RecordsOutOfSync int32 `json:"recordsOutOfSync,omitempty"`
}

// TrackedObject stands in the API for an object of another group, the parent of the subresource syncstatus. It is never
// served itself: the object is in group bindy.firestoned.io or externaldns.k8s.io.
//
// +kubebuilder:object:root=true
type TrackedObject struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

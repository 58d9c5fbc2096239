package bindcar

import (
	"time"
)

// Types of zones.
const (
	Primary   = "primary"
	Secondary = "secondary"
)

// Callers of the API, as their certificates name them, in the form of SPIFFE IDs. All others are refused.
const (
	// FleetIdentity and ControllerIdentity may do everything.
	FleetIdentity      = "spiffe://lockstep.internal/fleet"
	ControllerIdentity = "spiffe://lockstep.internal/controller"
	// APIServerIdentity may read notifications and readiness.
	APIServerIdentity = "spiffe://lockstep.internal/apiserver"
	// MetricsIdentity may read metrics and readiness.
	MetricsIdentity = "spiffe://lockstep.internal/metrics"
)

// PathPrefix is where the API is served; /metrics is at the root.
const PathPrefix = "/api/v1"

// Owner is a DNSZone: its "namespace/name" and its UID. One that is deleted and made again under its name is another. What is empty is not known.
type Owner struct{ Name, UID string }

// IsOther reports whether two owners are known to be different ones.
func (o Owner) IsOther(than Owner) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	return differ(o.Name, than.Name) || differ(o.UID, than.UID)
}

// CreateZone is the body of POST /zones.
type CreateZone struct {
	// ZoneName is the zone's DNS name, with or without the final dot.
	ZoneName string `json:"zoneName"`
	// ZoneType is Primary or Secondary.
	ZoneType string `json:"zoneType"`
	// UpdateKeyName is the TSIG key that may update a primary zone.
	UpdateKeyName string `json:"updateKeyName,omitempty"`
	// Owner is the DNSZone whose data the zone has, as "namespace/name", and OwnerUID its UID: one that is deleted and made again is another.
	Owner    string `json:"owner,omitempty"`
	OwnerUID string `json:"ownerUID,omitempty"`
	// ReplaceUnloaded has a zone that is there replaced if its data cannot be loaded.
	ReplaceUnloaded bool       `json:"replaceUnloaded,omitempty"`
	ZoneConfig      ZoneConfig `json:"zoneConfig"`
}

// ZoneConfig is the content of a primary zone, whom it notifies and who may transfer it.
type ZoneConfig struct {
	// TTL in seconds of records that have none of their own.
	TTL uint32 `json:"ttl,omitempty"`
	// SOA of a primary zone.
	SOA *SOA `json:"soa,omitempty"`
	// NameServers become NS records at the apex when Records has none there; NameServerIPs are their addresses.
	NameServers   []string          `json:"nameServers,omitempty"`
	NameServerIPs map[string]string `json:"nameServerIps,omitempty"`
	// Records are the zone's whole content but the SOA.
	Records []Record `json:"records,omitempty"`
	// AlsoNotify are servers, as "IP:port", that a primary notifies of changes. "IP:port key NAME" signs NOTIFY to a server with
	// another key than the transfer key.
	AlsoNotify []string `json:"alsoNotify,omitempty"`
	// AllowTransfer are address match elements that may transfer the zone, beside the transfer key.
	AllowTransfer []string `json:"allowTransfer,omitempty"`
	// Primaries are the servers, as "IP:port", that a secondary transfers from.
	Primaries []string `json:"primaries,omitempty"`
	// DNSSECPolicy is the dnssec-policy to sign with; InlineSigning keeps the unsigned zone apart: not so when absent.
	DNSSECPolicy  string `json:"dnssecPolicy,omitempty"`
	InlineSigning *bool  `json:"inlineSigning,omitempty"`
	// KeySecret names a Secret, in the pod's namespace, that keeps the keys which sign the zone. Those that it has are
	// used; those that named makes are put into it. Without one the keys are on the pod's volume only.
	KeySecret string `json:"keySecret,omitempty"`
}

// SOA is a zone's start of authority (RFC 1035 section 3.3.13); intervals in seconds.
type SOA struct {
	PrimaryNS   string `json:"primaryNs"`
	AdminEmail  string `json:"adminEmail"`
	Serial      uint32 `json:"serial"`
	Refresh     uint32 `json:"refresh"`
	Retry       uint32 `json:"retry"`
	Expire      uint32 `json:"expire"`
	NegativeTTL uint32 `json:"negativeTtl"`
}

// Record is one resource record.
type Record struct {
	// Name is relative to the zone ("@" is the apex) or absolute with a final dot.
	Name string `json:"name"`
	// Type is the mnemonic, for example "A".
	Type string `json:"type"`
	// Value is the rdata in presentation form (RFC 1035 section 5.1).
	Value string `json:"value"`
	// TTL in seconds; the zone's when absent.
	TTL *uint32 `json:"ttl,omitempty"`
	// Priority precedes the value of an MX or SRV record when it is set.
	Priority *uint16 `json:"priority,omitempty"`
}

// PatchZone is the body of PATCH /zones/{name}: what is present replaces what the zone has.
type PatchZone struct {
	AlsoNotify    *[]string `json:"alsoNotify,omitempty"`
	AllowTransfer *[]string `json:"allowTransfer,omitempty"`
	Primaries     *[]string `json:"primaries,omitempty"`
	// DNSSECPolicy signs the zone; "insecure" takes the signatures off again, "" stops looking after them.
	DNSSECPolicy *string `json:"dnssecPolicy,omitempty"`
	KeySecret    *string `json:"keySecret,omitempty"`
	// Owner of a zone that has none; another one is not replaced. OwnerUID completes an owner without one.
	Owner    *string `json:"owner,omitempty"`
	OwnerUID *string `json:"ownerUID,omitempty"`
}

// CheckDS is the body of POST /zones/{name}/checkds: whether a key of the zone has a DS record in the zone above, for which named waits
// before it drops a key.
type CheckDS struct {
	// KeyTag of the key.
	KeyTag uint16 `json:"keyTag"`
	// Published is true if all servers of the zone above have the DS record, false if none has it any more.
	Published bool `json:"published"`
}

// Zone is what named knows of a zone.
type Zone struct {
	Name string `json:"name"`
	// Type is Primary or Secondary.
	Type string `json:"zoneType"`
	// Serial of the zone; absent while named has no data for it.
	Serial *uint32 `json:"serial,omitempty"`
	// FilePath of the zone file.
	FilePath string `json:"filePath,omitempty"`
	// Added is true when the zone was added at run time, through this API.
	Added bool `json:"added"`
	// AlsoNotify, AllowTransfer and Primaries are as they were set last, word for word. They are absent when that is not
	// known, and empty when nothing was set. AlsoNotify leaves out the listener that the sidecar adds for itself.
	AlsoNotify    []string `json:"alsoNotify,omitzero"`
	AllowTransfer []string `json:"allowTransfer,omitzero"`
	Primaries     []string `json:"primaries,omitzero"`
	// DNSSECPolicy and KeySecret are as they were set last; absent when none was.
	DNSSECPolicy string `json:"dnssecPolicy,omitempty"`
	KeySecret    string `json:"keySecret,omitempty"`
	// Owner is the DNSZone whose data the zone has, as "namespace/name", and OwnerUID its UID; absent when that is not known.
	Owner    string `json:"owner,omitempty"`
	OwnerUID string `json:"ownerUID,omitempty"`
}

// OwnedBy is the DNSZone whose data the zone has.
func (z Zone) OwnedBy() Owner { return Owner{z.Owner, z.OwnerUID} }

// ZoneList is the response to GET /zones.
type ZoneList struct {
	// Zones are the names, in alphabetical order.
	Zones []string `json:"zones"`
	Count int      `json:"count"`
	// Items are the same zones with what named knows of them.
	Items []Zone `json:"items,omitempty"`
}

// ServerKeys is the response to GET /server/keys: the names of the TSIG keys that the server knows.
type ServerKeys struct {
	// Loaded are the keys that named has loaded and accepts, by their role: "update" or "transfer". A role is missing while
	// the keys that it is to have are on their way.
	Loaded map[string][]string `json:"loaded"`
	// Signing is the transfer key that all zones added through this API sign with; empty while one signs with another.
	Signing string `json:"signing,omitempty"`
}

// Answer is the response to a successful change or command.
type Answer struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
	Details string `json:"details,omitempty"`
}

// Readiness is the response to GET /ready when named answers on its control channel.
type Readiness struct {
	Answer
	// Version of named.
	Version string `json:"version,omitempty"`
}

// Failure is the body of every response with a status of 400 and above.
type Failure struct {
	Error   string `json:"error"`
	Details string `json:"details,omitempty"`
}

// Notification is a line of GET /notices: named serves a new serial of a zone.
type Notification struct {
	// Zone is the zone's name as in Zone.Name; empty in a line that is about no zone.
	Zone string `json:"zone,omitempty"`
	// Serial that named serves since then; absent if the zone is gone, or when the NOTIFY had none and named could not be asked for it.
	Serial *uint32 `json:"serial,omitempty"`
	// At is when the sidecar received the NOTIFY.
	At time.Time `json:"at"`
	// Lost says that zones may have changed without a line of their own: check all of them. Every stream begins with it, as
	// nothing is known of the time before; later it comes to a reader that fell too far behind.
	Lost bool `json:"lost,omitempty"`
}

// isHeartbeat reports whether a line only shows that the stream is alive.
func (n Notification) isHeartbeat() bool { return n.Zone == "" && !n.Lost }

// HeartbeatInterval is how often a line is sent when there is no news. A reader that received nothing for three times as
// long closes the stream.
const HeartbeatInterval = 5 * time.Second

package bindcar

import "time"

// Statistics is the response to GET /statistics: named's own counters since BootTime, by named's own names. Counters that
// named leaves out are zero.
type Statistics struct {
	// Version of named.
	Version string `json:"version"`
	// BootTime is when named started, ConfigTime when it read its configuration last.
	BootTime   time.Time `json:"bootTime"`
	ConfigTime time.Time `json:"configTime"`
	// Zones counts primary and secondary zones, and those of them that have data.
	Zones ZoneCounts `json:"zones"`
	// Requests are counted by opcode, Queries by type, Responses by rcode.
	Requests  map[string]uint64 `json:"requests"`
	Queries   map[string]uint64 `json:"queries"`
	Responses map[string]uint64 `json:"responses"`
	Transfers TransferCounts    `json:"transfers"`
	// Notifies and Updates (RFC 1996, RFC 2136) are those that named sent and took.
	Notifies NotifyCounts `json:"notifies"`
	Updates  UpdateCounts `json:"updates"`
	// RateLimited are the answers that the rate limit has truncated or dropped.
	RateLimited RateLimitCounts `json:"rateLimited"`
}

// ZoneCounts are numbers of zones.
type ZoneCounts struct {
	Primary   int `json:"primary"`
	Secondary int `json:"secondary"`
	Loaded    int `json:"loaded"`
}

// TransferCounts are numbers of zone transfers: those that this server asked for, and those that it was asked for.
type TransferCounts struct {
	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"`
	Served    uint64 `json:"served"`
	Refused   uint64 `json:"refused"`
}

// NotifyCounts are numbers of NOTIFY messages.
type NotifyCounts struct {
	Sent     uint64 `json:"sent"`
	Received uint64 `json:"received"`
	Refused  uint64 `json:"refused"`
}

// UpdateCounts are numbers of UPDATE messages; an unmet prerequisite is how a compare-and-swap fails.
type UpdateCounts struct {
	Done              uint64 `json:"done"`
	Refused           uint64 `json:"refused"`
	Failed            uint64 `json:"failed"`
	UnmetPrerequisite uint64 `json:"unmetPrerequisite"`
}

// RateLimitCounts are numbers of answers over the rate limit.
type RateLimitCounts struct {
	Truncated uint64 `json:"truncated"`
	Dropped   uint64 `json:"dropped"`
}

package bindcar

import "time"

// Notification is a line of GET /notices: named serves a new serial of a zone.
type Notification struct {
	// Zone is the zone's name as in Zone.Name; empty in a line that is about no zone.
	Zone string `json:"zone,omitempty"`
	// Serial that named serves since then. It is 0 when the NOTIFY had none and named could not be asked for it.
	Serial uint32 `json:"serial,omitempty"`
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

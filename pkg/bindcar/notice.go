package bindcar

import "time"

// Notice is a line of GET /notices: named serves a new serial of a zone.
type Notice struct {
	// Zone is the zone's name as in Zone.Name; empty in a line that is about no zone.
	Zone string `json:"zone,omitempty"`
	// Serial that named serves since then. It is 0 when named could not be asked for a serial that it did not tell.
	Serial uint32 `json:"serial,omitempty"`
	// At is when the sidecar heard of it.
	At time.Time `json:"at"`
	// Lost says that zones may have changed of which no line tells: look at all. Every stream begins with it, as nothing
	// is known of the time before; later it comes to a reader who fell too far behind.
	Lost bool `json:"lost,omitempty"`
}

// beat tells a line that only shows that the stream is alive.
func (n Notice) beat() bool { return n.Zone == "" && !n.Lost }

// heartbeat is how often a line is sent when there is nothing to tell. A reader who heard nothing three times as long
// gives the stream up.
const heartbeat = 5 * time.Second

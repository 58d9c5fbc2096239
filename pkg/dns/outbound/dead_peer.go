package outbound

import (
	"net"
	"time"
)

// silence is how long a peer may acknowledge nothing, neither data nor a probe of an idle connection. A peer that is slow, or stopped,
// acknowledges: its kernel does.
const silence = 4 * time.Second

// probeInterval is how often an idle connection is probed.
const probeInterval = time.Second

// newDialer makes TCP connections that end soon when nothing comes back from the other side's kernel. After a cut of the network TCP
// repeats what was lost after pauses that double, half a minute apart at the end; a new connection is there within a second. timeout
// bounds connecting, 0 for no limit.
func newDialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout:         timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeInterval, Interval: probeInterval, Count: int(silence / probeInterval)},
		Control:         setUserTimeout,
	}
}

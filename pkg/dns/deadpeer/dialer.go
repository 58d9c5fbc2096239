// Package deadpeer connects by TCP so that a connection ends soon when nothing comes back from the other side's kernel. After a cut of
// the network TCP repeats what was lost after pauses that double, half a minute apart at the end: whoever waits for that connection
// waits for long after the network works again. A new connection is there within a second.
package deadpeer

import (
	"net"
	"time"
)

// Timeout is how long a peer may acknowledge nothing, neither data nor a probe of an idle connection. A peer that is slow, or
// stopped, acknowledges: its kernel does.
const Timeout = 4 * time.Second

// probeInterval is how often an idle connection is probed.
const probeInterval = time.Second

// NewDialer returns a dialer whose connections have to be there after a while, 0 for no limit, and end after Timeout.
func NewDialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout:         timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeInterval, Interval: probeInterval, Count: int(Timeout / probeInterval)},
		Control:         setUserTimeout,
	}
}

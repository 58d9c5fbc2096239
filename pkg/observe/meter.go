package observe

import (
	"net/netip"
	"time"
)

// Meter is told what an Observer does, for metrics. Its methods are called by many at once and must not wait.
type Meter interface {
	// Asked tells of an SOA question that was sent, and how long its answer took; answered is false when there was none.
	Asked(server netip.AddrPort, answered bool, took time.Duration)
	// Observed tells where a call of Observe has its answer from.
	Observed(from Origin)
	// Transferred tells of a zone transfer that has ended.
	Transferred(full bool, err error)
}

// Origin is where an answer comes from.
type Origin string

const (
	// FromServer is an answer to a question of one's own.
	FromServer Origin = "server"
	// FromOthers is an answer to somebody else's question, which was under way.
	FromOthers Origin = "shared"
	// FromMemory is an answer that is young enough.
	FromMemory Origin = "kept"
)

type noMeter struct{}

func (noMeter) Asked(netip.AddrPort, bool, time.Duration) {}
func (noMeter) Observed(Origin)                           {}
func (noMeter) Transferred(bool, error)                   {}

// Sizes is what an Observer holds.
type Sizes struct {
	// Servers that something is kept of, and Mirrors of zones on them.
	Servers, Mirrors int
	// RRsets are those of all mirrors, whether or not they share memory.
	RRsets int
}

// Sizes counts what is kept.
func (o *Observer) Sizes() Sizes {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := Sizes{Servers: len(o.servers)}
	for _, z := range o.zones {
		if z.mirror != nil {
			s.Mirrors++
			s.RRsets += z.mirror.Len()
		}
	}
	return s
}

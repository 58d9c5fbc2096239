package observe

import "time"

// Meter receives what an Observer does, for metrics. Its methods are called concurrently and must not block.
type Meter interface {
	// Asked counts an SOA query; took is the time until its answer, or until it was given up if answered is false.
	Asked(server Peer, answered bool, took time.Duration)
	// Questioned counts a question for an RRset to a server that is read by query; err is why the answer cannot be used.
	Questioned(server Peer, err error)
	// Observed counts a call of Observe by where its answer came from.
	Observed(from Origin)
	// Transferred counts a zone transfer that has ended.
	Transferred(full bool, err error)
}

// Origin is where an answer came from.
type Origin string

const (
	// FromServer means that the call asked the server.
	FromServer Origin = "server"
	// FromOthers means that the call shared an observation that was under way.
	FromOthers Origin = "shared"
	// FromMemory means that a cached answer was recent enough.
	FromMemory Origin = "kept"
)

type noMeter struct{}

func (noMeter) Asked(Peer, bool, time.Duration) {}
func (noMeter) Questioned(Peer, error)          {}
func (noMeter) Observed(Origin)                 {}
func (noMeter) Transferred(bool, error)         {}

// Sizes is how much an Observer has cached.
type Sizes struct {
	// Servers with cached state, and Mirrors of zones on them.
	Servers, Mirrors int
	// RRsets are those of all mirrors, whether or not they share memory.
	RRsets int
	// Waiting are the questions for RRsets that wait for their turn.
	Waiting int
}

// Sizes counts what is cached, and the questions that wait for their turn.
func (o *Observer) Sizes() Sizes {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := Sizes{Servers: len(o.servers)}
	for _, rate := range o.rates {
		s.Waiting += rate.turns.countWaiting()
	}
	for _, byKey := range o.zones {
		for _, z := range byKey {
			if z.mirror != nil {
				s.Mirrors++
				s.RRsets += z.mirror.Len()
			}
		}
	}
	return s
}

package load

import (
	"context"
	"sync"
	"time"
)

// StallClock measures how late this process runs when it wants to. A machine that does not run us does not run servers either.
type StallClock struct {
	mu     sync.Mutex
	stalls []stall
}

// stall is a wake-up that was late.
type stall struct {
	end time.Time
	by  time.Duration
}

// A machine with more to do than processors is always a bit late.
const (
	stallPeriod   = 50 * time.Millisecond
	usualLateness = 100 * time.Millisecond
)

// NewStallClock starts a clock that runs until ctx ends.
func NewStallClock(ctx context.Context) *StallClock {
	c := &StallClock{}
	go func() {
		for ctx.Err() == nil {
			began := time.Now()
			time.Sleep(stallPeriod)
			c.note(time.Since(began) - stallPeriod)
		}
	}()
	return c
}

func (c *StallClock) note(late time.Duration) {
	if late < usualLateness {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalls = append(c.stalls, stall{time.Now(), late})
}

// Since returns for how long, all in all, the process did not run since a moment. Without a clock nobody knows of any stall.
func (c *StallClock) Since(began time.Time) (total time.Duration) {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.stalls {
		if s.end.After(began) {
			total += min(s.by, s.end.Sub(began))
		}
	}
	return total
}

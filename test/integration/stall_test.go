package integration

import (
	"context"
	"sync"
	"time"
)

// stallClock measures how late this process runs when it wants to. A machine that does not run us does not run servers either.
type stallClock struct {
	mu     sync.Mutex
	stalls []stall
}

// stall is a wake-up that was late.
type stall struct {
	end time.Time
	by  time.Duration
}

// A machine with more to do than processors is always a bit late. Time-outs of seconds are reached after a serious stall.
const (
	stallPeriod   = 50 * time.Millisecond
	usualLateness = 100 * time.Millisecond
	seriousStall  = time.Second
)

// newStallClock starts a clock that runs until ctx ends.
func newStallClock(ctx context.Context) *stallClock {
	c := &stallClock{}
	go func() {
		for ctx.Err() == nil {
			began := time.Now()
			time.Sleep(stallPeriod)
			c.note(time.Since(began) - stallPeriod)
		}
	}()
	return c
}

func (c *stallClock) note(late time.Duration) {
	if late < usualLateness {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalls = append(c.stalls, stall{time.Now(), late})
}

// since returns for how long, all in all, the process did not run since a moment.
func (c *stallClock) since(began time.Time) (total time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.stalls {
		if s.end.After(began) {
			total += min(s.by, s.end.Sub(began))
		}
	}
	return total
}

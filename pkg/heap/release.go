// Package heap returns to the system what a process that rests does not need. Go keeps the garbage of a start, or of a burst, until as
// much again is allocated or two minutes are over, and what it has freed for longer: a process that has just filled its caches has twice
// the memory of what is in them. After a LIST of 200 MiB into a cache of 100 MiB, a process has 310 MiB by itself, and 103 with this
// package (GOGC=50 go test -run xxx -bench Rest -benchtime 1x ./pkg/heap).
package heap

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A process rests while it allocates less in a second than a 64th of what is alive, or than a MiB if that is more. A collection takes CPU
// in proportion to what is alive: it is due when a quarter of that was allocated since the last one, which at rest takes 16 s at least.
const (
	interval   = time.Second
	restShare  = 64
	minRest    = 1 << 20
	dueShare   = 4
	minGarbage = 4 << 20
)

// ReleaseAtRest collects garbage and returns memory when the process rests after having allocated much, until the context ends.
func ReleaseAtRest(ctx context.Context) { releaseAtRest(ctx, interval) }

func releaseAtRest(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var before, released usage
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := readUsage()
		if now.hasRested(before) && now.hasGarbage(released) {
			debug.FreeOSMemory()
			released = now
		}
		before = now
	}
}

// usage is what Go's runtime says of the heap, in bytes.
type usage struct {
	// allocated is the sum of all allocations since the start, live what the last collection found alive.
	allocated, live uint64
}

func readUsage() usage {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return usage{samples[0].Value.Uint64(), samples[1].Value.Uint64()}
}

// hasRested reports whether the process has rested since the usage of an interval before.
func (u usage) hasRested(before usage) bool {
	return u.allocated-before.allocated < max(u.live/restShare, minRest)
}

// hasGarbage reports whether there may be much garbage since memory was released.
func (u usage) hasGarbage(released usage) bool {
	return u.allocated-released.allocated > max(u.live/dueShare, minGarbage)
}

package heap

import (
	"bytes"
	"context"
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
	"time"
)

const mib = 1 << 20

func TestRest(t *testing.T) {
	for name, test := range map[string]struct {
		second, since, live uint64
		rested, garbage     bool
	}{
		"after a start":             {0, 300 * mib, 200 * mib, true, true},
		"busy":                      {4 * mib, 300 * mib, 200 * mib, false, true},
		"slow for its size":         {3 * mib, 60 * mib, 200 * mib, true, true},
		"soon after a release":      {3 * mib, 48 * mib, 200 * mib, true, false},
		"a small one that is idle":  {mib / 2, 3 * mib, 2 * mib, true, false},
		"a small one after a burst": {mib / 2, 9 * mib, 2 * mib, true, true},
	} {
		now := usage{allocated: 1000 * mib, live: test.live}
		if got := now.hasRested(usage{allocated: now.allocated - test.second}); got != test.rested {
			t.Errorf("%s: rested %t", name, got)
		}
		if got := now.hasGarbage(usage{allocated: now.allocated - test.since}); got != test.garbage {
			t.Errorf("%s: garbage %t", name, got)
		}
	}
}

// The garbage of a burst leaves the process long before Go would collect it by itself, and what it took is the system's again.
func TestReleaseAtRest(t *testing.T) {
	const burst = 128 * mib
	garbage := make([][]byte, 0, burst/mib)
	for range burst / mib {
		garbage = append(garbage, make([]byte, mib))
	}
	if held := heldMemory(); held < burst {
		t.Fatalf("after a burst of %d bytes the heap has %d", burst, held)
	}
	runtime.KeepAlive(garbage)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		releaseAtRest(ctx, 50*time.Millisecond)
		close(ended)
	}()
	for deadline := time.Now().Add(30 * time.Second); heldMemory() > burst/4; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the heap still has %d bytes", heldMemory())
		}
	}
	cancel()
	<-ended
}

// heldMemory returns the memory that the heap has from the system, in bytes.
func heldMemory() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() + samples[1].Value.Uint64()
}

// BenchmarkRest is what the heap has from the system 3 s after a cache of 100 MiB was filled from a LIST of 200 MiB.
func BenchmarkRest(b *testing.B) {
	for name, start := range map[string]func(context.Context){"by itself": func(context.Context) {}, "released": ReleaseAtRest} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				ctx, cancel := context.WithCancel(b.Context())
				go start(ctx)
				kept := fillCache()
				time.Sleep(3 * interval)
				b.ReportMetric(float64(heldMemory())/mib, "MiB")
				runtime.KeepAlive(kept)
				cancel()
			}
		})
	}
}

// fillCache keeps objects of a KiB that it decodes from a text twice as long.
func fillCache() (kept [][]byte) {
	text := bytes.Repeat([]byte("x"), 200*mib)
	for part := range slices.Chunk(text, 2<<10) {
		kept = append(kept, bytes.Clone(part[:1<<10]))
	}
	runtime.KeepAlive(text)
	return kept
}

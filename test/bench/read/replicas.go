package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dns/lockstep/test/bench/rig"
	"github.com/lockstep-dns/lockstep/test/bench/usage"
)

// replicaCounts are how many replicas of our API server are asked the same.
var replicaCounts = []int{1, 2, 3}

const (
	// readers ask at the same time, for readTime.
	readers  = 16
	readTime = 15 * time.Second
)

// measureReplicas asks replicas of our API server for single records, in turn, as kube-apiserver does with
// --enable-aggregator-routing. Replicas share nothing, but readers who ask one of them at the same time share its questions to servers.
func (b *readBench) measureReplicas(ctx context.Context) error {
	costs := map[int]float64{}
	for _, count := range replicaCounts {
		addresses, err := b.ScaleAPIServer(ctx, count)
		if err != nil {
			return err
		}
		if costs[count], err = b.askReplicas(ctx, addresses); err != nil {
			return err
		}
	}
	_, err := b.ScaleAPIServer(ctx, 1)
	most := replicaCounts[len(replicaCounts)-1]
	b.AddResult("replicas", costs[most], costs[1], "ms", fmt.Sprintf("CPU of our API server for each GET of %d clients, with one replica; ours is with %d", readers, most))
	return err
}

// askReplicas returns what a GET costs our API server, in ms of CPU.
func (b *readBench) askReplicas(ctx context.Context, addresses []string) (float64, error) {
	read, err := b.ReplicaReader(ctx)
	if err != nil {
		return 0, err
	}
	for _, address := range addresses { // Each has the zone's content then.
		if _, err := read(ctx, address, b.recordStatusPath()); err != nil {
			return 0, err
		}
	}
	before, err := usage.Start(ctx, b.Rig)
	if err != nil {
		return 0, err
	}
	cpu, err := rig.ReadCPUTimes()
	if err != nil {
		return 0, err
	}
	times, err := b.readFor(ctx, readTime, func(ctx context.Context, n int) error {
		_, err := read(ctx, addresses[n%len(addresses)], b.SyncStatusPath(fmt.Sprintf("arecord.%s-%d", object, n%*records)))
		return err
	})
	if err != nil {
		return 0, err
	}
	now, err := rig.ReadCPUTimes()
	if err != nil {
		return 0, err
	}
	memory, err := b.APIServerMemory(ctx)
	if err != nil {
		return 0, err
	}
	each := 1000 * now.Since(cpu)["lockstep apiserver"] / float64(len(times))
	fmt.Printf("%d replicas, %d clients: %.0f GETs a second; %s; the largest replica has %.0f MiB\n",
		len(addresses), readers, float64(len(times))/readTime.Seconds(), times, rig.MiB(memory))
	return each, before.Report(ctx, len(times), "GETs")
}

// readFor has all readers read, one thing after the other, for some time. read gets the number of the request.
func (b *readBench) readFor(ctx context.Context, d time.Duration, read func(ctx context.Context, n int) error) (all rig.Times, err error) {
	var mu sync.Mutex
	var requests atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	end := time.Now().Add(d)
	for range readers {
		group.Go(func() error {
			for time.Now().Before(end) {
				began := time.Now()
				if err := read(ctx, int(requests.Add(1))); err != nil {
					return err
				}
				mu.Lock()
				all = append(all, time.Since(began))
				mu.Unlock()
			}
			return nil
		})
	}
	err = group.Wait()
	return all, err
}

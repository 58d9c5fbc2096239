package rig

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// sweepWorkers is how many questions of a sweep are under way at once.
const sweepWorkers = 8

// SweepServers asks every server for every name, again and again until each has answered with the address, and returns when the
// last of them did. A name that a server has answered is not asked for again.
func SweepServers(ctx context.Context, servers []netip.AddrPort, wanted []Address, limit time.Duration) (time.Time, error) {
	left := make([]pendingQuery, 0, len(servers)*len(wanted))
	for _, a := range wanted {
		for _, s := range servers {
			left = append(left, pendingQuery{s, a})
		}
	}
	all := len(left)
	said, last := time.Now(), time.Now()
	err := PollUntil(ctx, limit, 20*time.Millisecond, func() error {
		before := len(left)
		left = askPending(ctx, left)
		if len(left) < before {
			last = time.Now()
		}
		if len(left) == 0 {
			return nil
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			fmt.Printf("  %d of %d served\n", all-len(left), all)
		}
		return fmt.Errorf("%d of %d are not served, the first is %s by %s", len(left), all, left[0].wanted.Name, left[0].server)
	})
	return last, err
}

type pendingQuery struct {
	server netip.AddrPort
	wanted Address
}

// askPending asks a chunk of the questions and returns those that are still open, the ones just asked in vain at the end.
func askPending(ctx context.Context, questions []pendingQuery) []pendingQuery {
	asked := min(len(questions), sweepChunk)
	failed := make([]bool, asked)
	group := &errgroup.Group{}
	group.SetLimit(sweepWorkers)
	for i, q := range questions[:asked] {
		group.Go(func() error {
			failed[i] = CheckAnswer(ctx, q.server, q.wanted.Name, q.wanted.IP) != nil
			return nil
		})
	}
	_ = group.Wait()
	var left []pendingQuery
	for i := range asked {
		if failed[i] {
			left = append(left, questions[i])
		}
	}
	return slices.Concat(questions[asked:], left)
}

// sweepChunk is how many questions are asked before there is a pause.
const sweepChunk = 300

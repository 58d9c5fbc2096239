package rig

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// askers is how many questions of a sweep are under way at once.
const askers = 8

// Sweep asks every server for every name, again and again until each has answered with the address, and returns when the
// last of them did. A name that a server has answered is not asked for again.
func Sweep(ctx context.Context, servers []netip.AddrPort, wanted []Address, limit time.Duration) (time.Time, error) {
	left := make([]question, 0, len(servers)*len(wanted))
	for _, a := range wanted {
		for _, s := range servers {
			left = append(left, question{s, a})
		}
	}
	all := len(left)
	said, last := time.Now(), time.Now()
	err := Within(ctx, limit, 20*time.Millisecond, func() error {
		before := len(left)
		left = unanswered(ctx, left)
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

type question struct {
	server netip.AddrPort
	wanted Address
}

// unanswered asks a chunk of the questions and returns those that are still open, the ones just asked in vain at the end.
func unanswered(ctx context.Context, questions []question) []question {
	failed := make([]bool, len(questions))
	next := make(chan int)
	var wg sync.WaitGroup
	for range askers {
		wg.Go(func() {
			for i := range next {
				q := questions[i]
				failed[i] = Answers(ctx, q.server, q.wanted.Name, q.wanted.IP) != nil
			}
		})
	}
	asked := min(len(questions), chunk)
	for i := range asked {
		next <- i
	}
	close(next)
	wg.Wait()
	var left []question
	for i := range asked {
		if failed[i] {
			left = append(left, questions[i])
		}
	}
	return append(append([]question{}, questions[asked:]...), left...)
}

// chunk is how many questions are asked before there is a pause.
const chunk = 300

package rig

import (
	"context"
	"fmt"
	"time"
)

// WaitQuiet waits until nobody has written an object of ours for the given time: what comes after a change, as status, is
// done.
func (r *Rig) WaitQuiet(ctx context.Context, still time.Duration) error {
	var last float64
	since := time.Now()
	said := since
	return PollUntil(ctx, 15*time.Minute, 500*time.Millisecond, func() error {
		writes, err := r.CountWrites(ctx)
		if err != nil {
			return err
		}
		if writes != last {
			last, since = writes, time.Now()
		}
		if time.Since(since) >= still {
			return nil
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			fmt.Println("  waiting until the status of everything is written")
		}
		return fmt.Errorf("objects are still being written: %.0f so far", writes)
	})
}

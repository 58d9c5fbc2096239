package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// quietZone is the zone in another namespace of which one record is changed.
const quietZone = "quiet.example"

// measureMixed measures single changes in one namespace, at rest and while many records are created in another one, until these are all
// ready. Each namespace has servers of its own.
func measureMixed(ctx context.Context, r *rig.Rig) error {
	b := &bulkBench{Rig: r}
	beside, err := r.StartBeside(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(r.CreateZone(ctx, object, zone), beside.CreateZone(ctx, object, quietZone)); err != nil {
		return err
	}
	single := beside.DeclareRecords(rig.Objects, object, quietZone, rig.Objects.WantedRecords(quietZone, 1))
	if _, err := beside.CreateAll(ctx, single); err != nil {
		return err
	}
	if err := r.WaitQuiet(ctx, 2*time.Second); err != nil {
		return err
	}
	s := singleChanges{Rig: beside, zone: quietZone, record: single[0].GetName()}
	before, err := s.measure(ctx, func(done int) bool { return done < *changes })
	if err != nil {
		return err
	}
	all, err := b.encodeObjects(v1beta1.GroupVersion.String(), "ARecord", object)
	if err != nil {
		return err
	}
	burst := make(chan error, 1)
	go func() {
		creation, err := b.createAll(ctx, b.ARecordPath(""), all)
		fmt.Println("burst:", creation)
		if err == nil {
			_, err = waitReady(ctx, r, len(all))
		}
		burst <- err
	}()
	var burstErr error
	during, err := s.measure(ctx, func(int) bool {
		select {
		case burstErr = <-burst:
			return false
		default:
			return true
		}
	})
	if err := errors.Join(err, burstErr); err != nil {
		return err
	}
	servedBefore, readyBefore, served, ready := servedTimes(before), readyTimes(before), servedTimes(during), readyTimes(during)
	fmt.Printf("at rest: served %s\n         ready  %s\nburst:   served %s\n         ready  %s\n", servedBefore, readyBefore, served, ready)
	printSlowest(during, len(during)/100)
	what := fmt.Sprintf("99th percentile of %d changes at rest; ours is of %d changes while %d records are created in another namespace, until these are ready",
		len(servedBefore), len(served), len(all))
	r.AddResult("mixed", rig.Milliseconds(served.Quantile(.99)), rig.Milliseconds(servedBefore.Quantile(.99)), "ms", what)
	r.AddResult("mixed-ready", rig.Milliseconds(ready.Quantile(.99)), rig.Milliseconds(readyBefore.Quantile(.99)), "ms", what)
	return nil
}

// Command burst measures how long many new A RRs take until the primary and both secondaries serve all of them, counted
// from the API server's answer to the last object. It does so once for each form of objects: an object for each RR, and
// an object for ten. The reference, in the same run and on the same servers, is BIND's own nsupdate with the number of
// RRs in a message that suits it best.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// batches are the numbers of RRs in each of nsupdate's messages. 2,000 short ones nearly fill one.
var batches = []int{1, 100, 500, 1000, 2000}

var (
	records = flag.Int("records", 10_000, "A RRs to add")
	forms   = flag.String("forms", "objects,endpoints", "forms of the objects that declare them, of objects (one RR each), addresses (ARecords of ten) and endpoints (DNSEndpoints of ten)")
	limit   = flag.Duration("limit", 10*time.Minute, "when to give up")
)

func main() { rig.Main("burst", measureBurst) }

func measureBurst(ctx context.Context, r *rig.Rig) error {
	var parsed []rig.Form
	for _, name := range strings.Split(*forms, ",") {
		form, err := rig.ParseForm(name)
		if err != nil {
			return err
		}
		parsed = append(parsed, form)
	}
	reference, batch, err := fastestBatch(ctx, r)
	if err != nil {
		return err
	}
	for _, form := range parsed {
		ours, err := measureLockstep(ctx, r, form)
		if err != nil {
			return err
		}
		r.AddResult("burst-"+string(form), ours.Seconds(), reference.Seconds(), "s",
			fmt.Sprintf("nsupdate, %d RRs in batches of %d, until all three servers have them", *records, batch))
	}
	return nil
}

// measureLockstep declares the RRs as objects of a form and waits until they are served.
func measureLockstep(ctx context.Context, r *rig.Rig, form rig.Form) (time.Duration, error) {
	object := "burst-" + string(form)
	zone := object + ".example"
	wanted := form.WantedRecords(zone, *records)
	if err := r.CreateZone(ctx, object, zone); err != nil {
		return 0, err
	}
	if err := r.WaitQuiet(ctx, 2*time.Second); err != nil {
		return 0, err
	}
	before, err := r.ControllerState(ctx)
	if err != nil {
		return 0, err
	}
	peak := r.TrackPeakMemory(ctx)
	creation, err := r.CreateAll(ctx, r.DeclareRecords(form, object, zone, wanted))
	if err != nil {
		return 0, err
	}
	fmt.Printf("%s: %d RRs, %s\n", form, *records, creation)
	served, err := waitServed(ctx, r, zone, wanted)
	if err != nil {
		return 0, err
	}
	ours := max(0, served.Sub(creation.Ended))
	fmt.Printf("%s: served everywhere %.3f s after the last object, %.1f s after the first\n", form, ours.Seconds(), served.Sub(creation.Began).Seconds())
	if err := r.WaitQuiet(ctx, 3*time.Second); err != nil {
		return 0, err
	}
	after, err := r.ControllerState(ctx)
	fmt.Printf("%s: status written %.0f s after that; controller: %.1f s of CPU, memory %.0f MiB before, %.0f MiB at most, %.0f MiB afterwards\n",
		form, (time.Since(served) - 3*time.Second).Seconds(), after.CPU-before.CPU, rig.MiB(before.Resident), rig.MiB(peak()), rig.MiB(after.Resident))
	return ours, err
}

func waitServed(ctx context.Context, r *rig.Rig, zone string, wanted []rig.Address) (time.Time, error) {
	f, err := r.FollowZone(ctx, zone, wanted)
	if err != nil {
		return time.Time{}, err
	}
	at, err := f.WaitServed(ctx, *limit)
	if err != nil {
		return at, err
	}
	return at, f.CheckTransfer(ctx)
}

// fastestBatch tries nsupdate with all batches, each on an empty zone of its own.
func fastestBatch(ctx context.Context, r *rig.Rig) (fastest time.Duration, batch int, err error) {
	fastest = math.MaxInt64
	for _, n := range batches {
		took, err := measureNSUpdate(ctx, r, n)
		if err != nil {
			return 0, 0, err
		}
		if took < fastest {
			fastest, batch = took, n
		}
	}
	return fastest, batch, nil
}

func measureNSUpdate(ctx context.Context, r *rig.Rig, batch int) (time.Duration, error) {
	object := fmt.Sprintf("nsupdate-%d", batch)
	zone := object + ".example"
	wanted := rig.Objects.WantedRecords(zone, *records)
	if err := r.CreateZone(ctx, object, zone); err != nil {
		return 0, err
	}
	if err := r.WaitQuiet(ctx, 2*time.Second); err != nil {
		return 0, err
	}
	nsupdate, err := r.PrepareNSUpdate(ctx, zone, wanted, batch)
	if err != nil {
		return 0, err
	}
	defer nsupdate.Close()
	f, err := r.FollowZone(ctx, zone, wanted)
	if err != nil {
		return 0, err
	}
	before, err := r.ControllerState(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	sent := make(chan error, 1)
	go func() { sent <- nsupdate.Run(ctx) }()
	at, err := f.WaitServed(ctx, *limit)
	if sendErr := <-sent; sendErr != nil {
		return 0, sendErr
	}
	if err != nil {
		return 0, err
	}
	after, err := r.ControllerState(ctx)
	if err != nil {
		return 0, err
	}
	fmt.Printf("nsupdate, batches of %d: %.3f s until all three servers have %d RRs (the controller used %.2f s of CPU meanwhile)\n",
		batch, at.Sub(began).Seconds(), *records, after.CPU-before.CPU)
	return at.Sub(began), f.CheckTransfer(ctx)
}

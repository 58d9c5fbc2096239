package main

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// measureList asks for the SyncStatus of all zones, beside bare questions for their serials at the same servers. Answers that are
// not older than a second are not asked for again: that long is waited in between.
func (b *zonesBench) measureList(ctx context.Context) error {
	if *lists == 0 {
		return nil
	}
	path := b.SyncStatusPath("") + "?fieldSelector=kind%3DDNSZone"
	err := rig.PollUntil(ctx, time.Minute, time.Second, func() error {
		_, err := b.ListInSync(ctx, path, len(b.names))
		return err
	})
	if err != nil {
		return err
	}
	var ours, hop, round, signed rig.Times
	for range *lists {
		time.Sleep(1200 * time.Millisecond)
		_, took, err := b.ReadPath(ctx, path)
		if err != nil {
			return err
		}
		ours = append(ours, took)
		if took, err = b.MeasureHop(ctx); err != nil {
			return err
		}
		hop = append(hop, took)
		if took, err = b.MeasureSerials(ctx, b.absoluteNames()...); err != nil {
			return err
		}
		round = append(round, took)
		if took, err = b.MeasureSignedSerials(ctx, b.absoluteNames()...); err != nil {
			return err
		}
		signed = append(signed, took)
	}
	fmt.Printf("LIST of %d zones on three servers: %s\n", len(b.names), ours)
	fmt.Println("the same bare questions for serials: ", round)
	fmt.Println("these, signed:                       ", signed)
	addResult := func(name, what string, questions rig.Times) {
		b.AddResult(name, rig.Milliseconds(ours.Quantile(.5)), rig.Milliseconds(hop.Quantile(.5)+questions.Quantile(.5)), "ms",
			fmt.Sprintf("%d %s parallel SOA questions and the hop to an aggregated API; medians", len(b.names)*len(b.Servers), what))
	}
	addResult("list-zones", "bare", round)
	addResult("list-zones-limit", "signed", signed)
	return nil
}

func (b *zonesBench) absoluteNames() []string {
	absolute := make([]string, len(b.names))
	for i, name := range b.names {
		absolute[i] = name + "."
	}
	return absolute
}

// measureRestart deletes the controller's pods and waits until the next one has been over every zone.
func (b *zonesBench) measureRestart(ctx context.Context) error {
	if err := b.WaitQuiet(ctx, 5*time.Second); err != nil {
		return err
	}
	began := time.Now()
	if err := b.RestartController(ctx); err != nil {
		return err
	}
	last, err := b.WaitRestarted(ctx, len(b.names), *limit)
	if err != nil {
		return fmt.Errorf("after a restart: %w", err)
	}
	took := time.Since(began)
	fmt.Printf("a new controller has been over all %d zones %.1f s after the old one was stopped, with %.1f s of CPU and %.0f MiB\n",
		len(b.names), took.Seconds(), last.CPU, rig.MiB(last.Resident))
	bare, err := b.MeasureSerials(ctx, b.absoluteNames()...)
	if err != nil {
		return err
	}
	least, err := b.MeasureTakeOver(ctx, b.absoluteNames()...)
	if err != nil {
		return err
	}
	questions := fmt.Sprintf("%d parallel SOA questions", len(b.names)*len(b.Servers))
	b.AddResult("zones-restart", took.Seconds(), bare.Seconds(), "s", "bare: "+questions)
	b.AddResult("zones-restart-limit", took.Seconds(), least.Seconds(), "s", "a LIST of the objects, and signed: "+questions+" and an AXFR of each zone from the primary")
	return nil
}

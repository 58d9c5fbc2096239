package main

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// memoryBefore is what a new API server needs with the zone and no records.
func (b *bench) memoryBefore(ctx context.Context) (err error) {
	b.empty, err = b.resident(ctx)
	return err
}

// memoryAfter is what a new API server needs with the records, and with what three servers hold of them.
func (b *bench) memoryAfter(ctx context.Context) error {
	full, err := b.resident(ctx)
	if err != nil {
		return err
	}
	objects, _, err := b.Read(ctx, b.ARecord(""))
	if err != nil {
		return err
	}
	data, err := b.ZoneBytes(ctx, apex)
	if err != nil {
		return err
	}
	if _, err := b.InSync(ctx, b.recordsOnly(), *records); err != nil {
		return err
	}
	listed, err := b.APIServerResident(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("our API server: %.1f MiB without records, %.1f MiB with %d (%.2f KiB each), %.1f MiB once all were listed; as JSON they are %.1f MiB, and %.1f MiB of names and data on three servers\n",
		rig.MiB(b.empty), rig.MiB(full), *records, (full-b.empty)/1024/float64(*records), rig.MiB(listed), rig.MiB(float64(len(objects))), rig.MiB(float64(data)))
	b.Result("memory", rig.MiB(full-b.empty), rig.MiB(float64(len(objects)+data)), "MiB",
		fmt.Sprintf("%d records as JSON and what three servers hold of them", *records))
	return nil
}

// settle is how long a process is left alone before its memory is read.
const settle = 3 * time.Second

// resident starts our API server anew, has it fetch the zone from all its servers, and reads its memory.
func (b *bench) resident(ctx context.Context) (float64, error) {
	if err := b.RestartAPIServer(ctx); err != nil {
		return 0, err
	}
	if _, _, err := b.Read(ctx, b.SyncStatuses("dnszone."+object)); err != nil {
		return 0, err
	}
	time.Sleep(settle)
	return b.APIServerResident(ctx)
}

package main

import (
	"context"
	"fmt"

	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// measureEmptyMemory is what a new API server needs with the zone and no records.
func (b *readBench) measureEmptyMemory(ctx context.Context) (err error) {
	b.emptyMemory, err = b.memoryAfterRestart(ctx)
	return err
}

// measureFullMemory is what a new API server needs with the records, and with what three servers hold of them.
func (b *readBench) measureFullMemory(ctx context.Context) error {
	full, err := b.memoryAfterRestart(ctx)
	if err != nil {
		return err
	}
	objects, _, err := b.ReadPath(ctx, b.ARecordPath(""))
	if err != nil {
		return err
	}
	data, err := b.CountZoneBytes(ctx, apex)
	if err != nil {
		return err
	}
	if _, err := b.ListInSync(ctx, b.recordStatusPath(), *records); err != nil {
		return err
	}
	listed, err := b.APIServerMemory(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("our API server: %.1f MiB without records, %.1f MiB with %d (%.2f KiB each), %.1f MiB once all were listed; as JSON they are %.1f MiB, and %.1f MiB of names and data on three servers\n",
		rig.MiB(b.emptyMemory), rig.MiB(full), *records, (full-b.emptyMemory)/1024/float64(*records), rig.MiB(listed), rig.MiB(float64(len(objects))), rig.MiB(float64(data)))
	b.AddResult("memory", rig.MiB(full-b.emptyMemory), rig.MiB(float64(len(objects)+data)), "MiB",
		fmt.Sprintf("%d records as JSON and what three servers hold of them", *records))
	return nil
}

// memoryAfterRestart returns the memory of our API server after a start, with the zone from all its servers.
func (b *readBench) memoryAfterRestart(ctx context.Context) (float64, error) {
	return b.MemoryAfterRestart(ctx, b.SyncStatusPath("dnszone."+object), rig.SettleTime)
}

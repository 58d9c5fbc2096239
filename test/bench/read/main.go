// Command read measures what it costs to ask: the SyncStatus of one record, of all records of a large zone, a change on
// its way to many watchers, and the memory that our API server needs for the records. All are asked of kube-apiserver, as
// users do, and each beside what the same way costs without the work that only we do.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

const (
	object = "read"
	zone   = "read.example"
	apex   = zone + "."
)

// pause is how long nothing happens before each request that is measured alone, ours and those that it is compared with:
// processors that sleep take a while to wake, in every process that a request passes through.
const pause = 20 * time.Millisecond

// measurements are what can be measured, in this order: memory begins before the records are there.
var measurements = []string{"memory", "get", "list", "watch", "replicas"}

var (
	records  = flag.Int("records", 10_000, "ARecords of one zone")
	only     = flag.String("only", strings.Join(measurements, ","), "what to measure, separated by commas")
	gets     = flag.Int("gets", 500, "questions about one record")
	lists    = flag.Int("lists", 20, "questions about all of them")
	watchers = flag.Int("watchers", 1000, "watches of the namespace")
	changes  = flag.Int("changes", 30, "changes that the watches report")
)

func main() { rig.Main("read", measureReads) }

func measureReads(ctx context.Context, r *rig.Rig) error {
	b := &readBench{Rig: r, measured: strings.Split(*only, ",")}
	for _, part := range b.measured {
		if !slices.Contains(measurements, part) {
			return fmt.Errorf("-only: %q is none of %s", part, strings.Join(measurements, ", "))
		}
	}
	if err := r.CreateZone(ctx, object, zone); err != nil {
		return err
	}
	steps := []struct {
		part string
		run  func(context.Context) error
	}{{"memory", b.measureEmptyMemory}, {"", b.createRecords}, {"memory", b.measureFullMemory}, {"get", b.measureGet}, {"list", b.measureList}, {"watch", b.measureWatch}, {"replicas", b.measureReplicas}}
	for _, s := range steps {
		if s.part != "" && !slices.Contains(b.measured, s.part) {
			continue
		}
		if err := s.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

type readBench struct {
	*rig.Rig
	measured []string
	// statusTexts are the SyncStatus of the records, as JSON.
	statusTexts []json.RawMessage
	// emptyMemory is the memory of our API server without the records.
	emptyMemory float64
}

// recordStatusPath returns the path of the SyncStatus objects of the records.
func (b *readBench) recordStatusPath() string {
	return b.SyncStatusPath("") + "?fieldSelector=kind%3DARecord"
}

// createRecords makes the records and waits until each is served and says so.
func (b *readBench) createRecords(ctx context.Context) error {
	wanted := rig.Objects.WantedRecords(zone, *records)
	creation, err := b.CreateAll(ctx, b.DeclareRecords(rig.Objects, object, zone, wanted))
	if err != nil {
		return err
	}
	fmt.Printf("a zone of %d records: %s\n", *records, creation)
	f, err := b.FollowZone(ctx, zone, wanted)
	if err != nil {
		return err
	}
	if _, err := f.WaitServed(ctx, 10*time.Minute); err != nil {
		return err
	}
	if err := b.WaitQuiet(ctx, 5*time.Second); err != nil {
		return err
	}
	err = rig.PollUntil(ctx, time.Minute, time.Second, func() error {
		_, err := b.ListInSync(ctx, b.recordStatusPath(), *records)
		return err
	})
	if err != nil {
		return err
	}
	body, _, err := b.ReadPath(ctx, b.recordStatusPath())
	if err != nil {
		return err
	}
	var list struct{ Items []json.RawMessage }
	err = json.Unmarshal(body, &list)
	b.statusTexts = list.Items
	return err
}

// measureGet asks about one record at rest. In turn with what it is compared with, so that whatever else the machine does weighs
// on all.
func (b *readBench) measureGet(ctx context.Context) error {
	var ours, hop, round, stored rig.Times
	read := func(path string) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			_, took, err := b.ReadPath(ctx, path)
			return took, err
		}
	}
	for i := range *gets {
		name := fmt.Sprintf("%s-%d", object, i**records / *gets)
		for _, question := range []struct {
			times *rig.Times
			ask   func() (time.Duration, error)
		}{
			{&ours, read(b.SyncStatusPath("arecord." + name))},
			{&hop, func() (time.Duration, error) { return b.MeasureHop(ctx) }},
			{&round, func() (time.Duration, error) { return b.MeasureSerials(ctx, apex) }},
			{&stored, read(b.ARecordPath(name))},
		} {
			time.Sleep(pause)
			took, err := question.ask()
			if err != nil {
				return err
			}
			*question.times = append(*question.times, took)
		}
	}
	fmt.Println("GET of one SyncStatus:   ", ours)
	fmt.Println("hop through kube-apiserver:", hop)
	fmt.Println("SOA of three servers:    ", round)
	fmt.Println("GET of the ARecord:      ", stored)
	for _, q := range []struct {
		name, what string
		at         float64
	}{{"get-p99", "99th percentiles of", .99}, {"get", "medians of", .5}} {
		b.AddResult(q.name, rig.Milliseconds(ours.Quantile(q.at)), rig.Milliseconds(hop.Quantile(q.at)+round.Quantile(q.at)), "ms",
			fmt.Sprintf("%s the hop to an aggregated API and of one parallel round of SOA questions; %d records", q.what, *records))
	}
	return nil
}

// measureList asks about all records, beside as many ConfigMaps of the same size.
func (b *readBench) measureList(ctx context.Context) error {
	if err := b.createConfigMaps(ctx); err != nil {
		return err
	}
	var ours, reference rig.Times
	var size, sizeOf int
	for range *lists {
		body, took, err := b.ReadPath(ctx, b.recordStatusPath())
		if err != nil {
			return err
		}
		ours, size = append(ours, took), len(body)
		if body, took, err = b.ReadPath(ctx, b.ConfigMapPath("")+"?labelSelector="+fillerLabel); err != nil {
			return err
		}
		reference, sizeOf = append(reference, took), len(body)
	}
	fmt.Printf("LIST of %d SyncStatus, %.1f MiB:  %s\n", *records, rig.MiB(float64(size)), ours)
	fmt.Printf("LIST of %d ConfigMaps, %.1f MiB:  %s\n", *records, rig.MiB(float64(sizeOf)), reference)
	b.AddResult("list", rig.Milliseconds(ours.Quantile(.5)), rig.Milliseconds(reference.Quantile(.5)), "ms",
		fmt.Sprintf("kube-apiserver's LIST of as many ConfigMaps of the same size; medians, %d records on three servers", *records))
	return nil
}

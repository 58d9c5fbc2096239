// Command steady measures what a zone costs in which nothing changes: CPU of the controller, questions to BIND, writes to
// the API server. The ratio is to one core; the same zone without records is measured in the same run.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

const zone = "steady.example"

var (
	records = flag.Int("records", 10_000, "A RRs in the zone")
	form    = flag.String("form", "objects", "form of the objects that declare them: objects, addresses or endpoints")
	window  = flag.Duration("window", 2*time.Minute, "how long to look, at the zone without records and at the one with them")
)

func main() { rig.Main("steady", measureSteadyState) }

func measureSteadyState(ctx context.Context, r *rig.Rig) error {
	form, err := rig.ParseForm(*form)
	if err != nil {
		return err
	}
	if err := r.CreateZone(ctx, "steady", zone); err != nil {
		return err
	}
	empty, err := measureRates(ctx, r)
	if err != nil {
		return err
	}
	fmt.Printf("without records: %s\n", empty)
	wanted := form.WantedRecords(zone, *records)
	if _, err := r.CreateAll(ctx, r.DeclareRecords(form, "steady", zone, wanted)); err != nil {
		return err
	}
	f, err := r.FollowZone(ctx, zone, wanted)
	if err != nil {
		return err
	}
	if _, err := f.WaitServed(ctx, 10*time.Minute); err != nil {
		return err
	}
	full, err := measureRates(ctx, r)
	if err != nil {
		return err
	}
	fmt.Printf("%d records: %s\n", *records, full)
	if err := f.CheckTransfer(ctx); err != nil {
		return err
	}
	r.AddResult("steady", full.cpu, 60, "s/min",
		fmt.Sprintf("one core; %d records: %.1f queries and %.1f writes a minute; without records: %.3f s, %.1f queries and %.1f writes",
			*records, full.queries, full.writes, empty.cpu, empty.queries, empty.writes))
	return nil
}

// minuteRates are per minute.
type minuteRates struct{ cpu, queries, other, writes, resident float64 }

// corePercent returns the share of one core, in percent.
func (x minuteRates) corePercent() float64 { return x.cpu / 60 * 100 }

func (x minuteRates) String() string {
	return fmt.Sprintf("controller %.3f s of CPU a minute (%.2f %% of a core), %.0f MiB; BIND %.1f queries and %.1f NOTIFYs and UPDATEs a minute; %.1f writes to the API server a minute",
		x.cpu, x.corePercent(), rig.MiB(x.resident), x.queries, x.other, x.writes)
}

// measureRates waits until all is done and counts from then on.
func measureRates(ctx context.Context, r *rig.Rig) (minuteRates, error) {
	if err := r.WaitQuiet(ctx, 5*time.Second); err != nil {
		return minuteRates{}, err
	}
	before, err := readCounters(ctx, r)
	if err != nil {
		return minuteRates{}, err
	}
	select {
	case <-ctx.Done():
		return minuteRates{}, ctx.Err()
	case <-time.After(*window):
	}
	after, err := readCounters(ctx, r)
	minutes := after.at.Sub(before.at).Minutes()
	return minuteRates{
		cpu:      (after.controller.CPU - before.controller.CPU) / minutes,
		queries:  (after.questions.Query - before.questions.Query) / minutes,
		other:    (after.questions.Notify + after.questions.Update - before.questions.Notify - before.questions.Update) / minutes,
		writes:   (after.writes - before.writes) / minutes,
		resident: after.controller.Resident,
	}, err
}

type counterReadings struct {
	at         time.Time
	controller rig.Controller
	questions  rig.Questions
	writes     float64
}

func readCounters(ctx context.Context, r *rig.Rig) (c counterReadings, err error) {
	if c.questions, err = r.CountQuestions(ctx); err != nil {
		return c, err
	}
	if c.writes, err = r.CountWrites(ctx); err != nil {
		return c, err
	}
	c.controller, err = r.ControllerState(ctx)
	c.at = time.Now()
	return c, err
}

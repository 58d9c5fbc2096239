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

func main() { rig.Main("steady", run) }

func run(ctx context.Context, r *rig.Rig) error {
	form, err := rig.ParseForm(*form)
	if err != nil {
		return err
	}
	if err := r.MakeZone(ctx, "steady", zone); err != nil {
		return err
	}
	empty, err := observe(ctx, r)
	if err != nil {
		return err
	}
	fmt.Printf("without records: %s\n", empty)
	wanted := form.Wanted(zone, *records)
	if _, err := r.Create(ctx, r.Declare(form, "steady", zone, wanted)); err != nil {
		return err
	}
	f, err := r.Follow(ctx, zone, wanted)
	if err != nil {
		return err
	}
	if _, err := f.Served(ctx, 10*time.Minute); err != nil {
		return err
	}
	full, err := observe(ctx, r)
	if err != nil {
		return err
	}
	fmt.Printf("%d records: %s\n", *records, full)
	if err := f.Check(ctx); err != nil {
		return err
	}
	r.Result("steady", full.cpu, 60, "s/min",
		fmt.Sprintf("one core; %d records: %.1f queries and %.1f writes a minute; without records: %.3f s, %.1f queries and %.1f writes",
			*records, full.queries, full.writes, empty.cpu, empty.queries, empty.writes))
	return nil
}

// rates are per minute.
type rates struct{ cpu, queries, other, writes, resident float64 }

// core is the share of one core, in percent.
func (x rates) core() float64 { return x.cpu / 60 * 100 }

func (x rates) String() string {
	return fmt.Sprintf("controller %.3f s of CPU a minute (%.2f %% of a core), %.0f MiB; BIND %.1f queries and %.1f NOTIFYs and UPDATEs a minute; %.1f writes to the API server a minute",
		x.cpu, x.core(), rig.MiB(x.resident), x.queries, x.other, x.writes)
}

// observe waits until all is done and counts from then on.
func observe(ctx context.Context, r *rig.Rig) (rates, error) {
	if err := r.Quiet(ctx, 5*time.Second); err != nil {
		return rates{}, err
	}
	before, err := take(ctx, r)
	if err != nil {
		return rates{}, err
	}
	select {
	case <-ctx.Done():
		return rates{}, ctx.Err()
	case <-time.After(*window):
	}
	after, err := take(ctx, r)
	minutes := after.at.Sub(before.at).Minutes()
	return rates{
		cpu:      (after.controller.CPU - before.controller.CPU) / minutes,
		queries:  (after.questions.Query - before.questions.Query) / minutes,
		other:    (after.questions.Notify + after.questions.Update - before.questions.Notify - before.questions.Update) / minutes,
		writes:   (after.writes - before.writes) / minutes,
		resident: after.controller.Resident,
	}, err
}

type counters struct {
	at         time.Time
	controller rig.Controller
	questions  rig.Questions
	writes     float64
}

func take(ctx context.Context, r *rig.Rig) (c counters, err error) {
	if c.questions, err = r.Questions(ctx); err != nil {
		return c, err
	}
	if c.writes, err = r.Writes(ctx); err != nil {
		return c, err
	}
	c.controller, err = r.Controller(ctx)
	c.at = time.Now()
	return c, err
}

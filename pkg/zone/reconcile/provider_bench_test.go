package reconcile

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/test/knot"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// BenchmarkProvider is a pass that brings 10,000 new RRsets to a server that others run, the look before and the one after it
// included, beside nsupdate, which sends the same ones to a server of the same kind in messages of 1,000.
func BenchmarkProvider(b *testing.B) {
	const records = 10_000
	for name, start := range map[string]func() *bind.Server{
		"bind": func() *bind.Server { return bind.Start(b, bind.Options{Zones: []bind.Zone{{Name: rigZone}}}) },
		"knot": func() *bind.Server {
			k := knot.Start(b, map[string]string{rigZone: ""})
			return &bind.Server{Addr: k.Addr, Update: k.Update, Transfer: k.Transfer}
		},
	} {
		b.Run(name, func(b *testing.B) {
			var ours, reference []time.Duration
			for range 5 {
				ours = append(ours, timeOfPass(b, start(), records))
				reference = append(reference, timeOfTool(b, start(), records))
			}
			slices.Sort(ours)
			slices.Sort(reference)
			ratio := ours[2].Seconds() / reference[2].Seconds()
			fmt.Printf("RESULT provider-%s ratio=%.2f ours=%.2f s reference=%.2f s (%d RRsets by nsupdate in messages of 1,000; medians of 5)\n",
				name, ratio, ours[2].Seconds(), reference[2].Seconds(), records)
			b.ReportMetric(ratio, "ratio")
		})
	}
}

func timeOfPass(b *testing.B, s *bind.Server, records int) time.Duration {
	b.Helper()
	r := newRig(b, 1, bind.Zone{})
	r.withoutInstances()
	r.primary = []*bind.Server{s}
	r.provide("corp", r.primary)
	// The zone is declared as the server has it. Knot lets an update wait that comes within a second of another one, at times.
	r.zone.Spec.TTL, r.zone.Spec.SOARecord.Refresh, r.zone.Spec.SOARecord.Retry, r.zone.Spec.SOARecord.Expire = new(int64(300)), 3600, 600, 86400
	r.zone.Spec.SOARecord.NegativeTTL = new(int64(60))
	r.zones.Set(r.zone)
	if p := r.pass(); p.event.Changes.HasChanges() {
		b.Fatalf("the first pass changes %+v", p.event.Changes)
	}
	for n := range records {
		r.zones.Set(numbered(n, 1))
	}
	began := time.Now()
	p := r.pass()
	took := time.Since(began)
	if !p.event.Programmed.Holds() || len(p.event.Unprogrammed) > 0 || p.event.Changes.Len() != records {
		b.Fatalf("%+v, %d unprogrammed, %d changes", p.event.Programmed, len(p.event.Unprogrammed), p.event.Changes.Len())
	}
	return took
}

func timeOfTool(b *testing.B, s *bind.Server, records int) time.Duration {
	b.Helper()
	var script strings.Builder
	fmt.Fprintf(&script, "server %s %d\nzone %s\n", s.Addr.Addr(), s.Addr.Port(), rigZone)
	for n := range records {
		fmt.Fprintf(&script, "update add r%06d.%s 3600 A 192.0.2.2\n", n, rigZone)
		if n%1000 == 999 {
			script.WriteString("send\n")
		}
	}
	cmd := exec.Command("nsupdate", "-v", "-y", strings.TrimSuffix(s.Update.Algorithm, ".")+":"+s.Update.Name+":"+s.Update.Secret)
	cmd.Stdin = strings.NewReader(script.String())
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	if err != nil {
		b.Fatalf("nsupdate: %v\n%s", err, out)
	}
	if got := served(b, s, fmt.Sprintf("r%06d", records-1)); len(got) != 1 {
		b.Fatalf("nsupdate has not written: %v", got)
	}
	return took
}

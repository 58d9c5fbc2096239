package rfc2136_test

import (
	"fmt"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	"github.com/lockstep-dns/lockstep/test/named"
)

func benchmarkApply(b *testing.B, n int) {
	s := named.Start(b, named.Options{Zones: []named.Zone{{Name: zone, Serial: 100}}})
	p := rfc2136.New(rfc2136.Options{})
	defer p.Close()
	soa := observe.New(observe.Options{}).Serial(b.Context(), observe.Peer{Addr: s.Addr}, zone, nil).SOA
	target := rfc2136.Target{Server: s.Addr, Zone: zone, Key: &s.Update}
	var create, remove plan.Changes
	for i := range n {
		create.Create = append(create.Create, set(fmt.Sprintf("h%06d", i), "A", 60, "192.0.2.1"))
	}
	remove.Delete = create.Create
	for b.Loop() {
		for _, c := range []plan.Changes{create, remove} {
			result, err := p.Apply(b.Context(), target, c, soa, ahead(soa, rfc2136.Batches(c)))
			if err != nil {
				b.Fatal(err)
			}
			soa = result.SOA
		}
	}
	b.ReportMetric(float64(2*n*b.N)/b.Elapsed().Seconds(), "RRs/s")
}

func BenchmarkApplyOne(b *testing.B)         { benchmarkApply(b, 1) }
func BenchmarkApplyTenThousand(b *testing.B) { benchmarkApply(b, 10_000) }

package sidecar

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// BenchmarkCreateZone adds small zones, one request after the other and eight at a time.
func BenchmarkCreateZone(b *testing.B) {
	for _, parallel := range []int{1, 8} {
		b.Run(fmt.Sprintf("parallel=%d", parallel), func(b *testing.B) {
			s := start(b, v1beta1.RolePrimary, [2]*wire.Key{})
			var n atomic.Int64
			b.SetParallelism(parallel)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					zone := primaryZone(fmt.Sprintf("z%d.example", n.Add(1)), s.UpdateKey.Name)
					if err := s.client.CreateZone(b.Context(), s.addr, zone); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// BenchmarkList is what a look at a pod with a thousand zones costs: a list of them, CPU of the client and the sidecar, which are in this
// process, and time, in which named works as well.
func BenchmarkList(b *testing.B) {
	const zones = 1000
	s := start(b, v1beta1.RolePrimary, [2]*wire.Key{})
	for n := range zones {
		if err := s.client.CreateZone(b.Context(), s.addr, primaryZone(fmt.Sprintf("z%d.example", n), s.UpdateKey.Name)); err != nil {
			b.Fatal(err)
		}
	}
	const lists = 20
	for b.Loop() {
		before := cpu(b)
		for range lists {
			if list, err := s.client.Zones(b.Context(), s.addr); err != nil || list.Count < zones {
				b.Fatal(list.Count, err)
			}
		}
		b.ReportMetric((cpu(b)[0]-before[0]).Seconds()*1e6/lists/zones, "µs/zone-of-this-process")
		b.ReportMetric(b.Elapsed().Seconds()*1e6/lists/zones, "µs/zone")
	}
}

package sidecar

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/wire"
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

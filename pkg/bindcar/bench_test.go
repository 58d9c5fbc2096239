package bindcar

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

// BenchmarkZoneFile writes a zone of 100,000 records.
func BenchmarkZoneFile(b *testing.B) {
	zone := primaryZone("large.example", "")
	for i := range 100_000 {
		zone.ZoneConfig.Records = append(zone.ZoneConfig.Records, Record{Name: fmt.Sprintf("h%d", i), Type: "A", Value: "192.0.2.1"})
	}
	file := b.TempDir() + "/zone"
	for b.Loop() {
		if err := writeZone(file, "large.example", zone.ZoneConfig); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDescriptions reads how 10,000 zones were added: all of them once, and again when one has changed.
func BenchmarkDescriptions(b *testing.B) {
	s := &server{options: Options{ZonesDir: b.TempDir()}}
	write := func(i int) {
		d := description{Name: fmt.Sprintf("z%d.example", i), Type: Primary, AlsoNotify: []string{"192.0.2.1:53", "192.0.2.2:53"}, NoticeAddress: "127.0.0.1:9954"}
		if err := d.save(s.files(d.Name).description()); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 10_000 {
		write(i)
	}
	for _, name := range []string{"first", "again"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if name == "first" {
					s.descriptions = descriptionCache{}
				}
				write(7)
				if all, err := s.descriptions.all(s.options.ZonesDir); err != nil || len(all) != 10_000 {
					b.Fatal(len(all), err)
				}
			}
		})
	}
}

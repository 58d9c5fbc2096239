package parallel

import (
	"fmt"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// BenchmarkForRange reads the data of 10,000 records one by one, and on all processors. The shortest of all times counts: others may keep the
// processors.
func BenchmarkForRange(b *testing.B) {
	texts := make([]string, 10_000)
	for i := range texts {
		texts[i] = fmt.Sprintf("10 20 443 host-%d.example.com.", i)
	}
	read := func(i int) { _, _ = rrset.Parse(rrset.Key{Type: dns.TypeSRV}, texts[i]) }
	for name, run := range map[string]func(){
		"alone": func() {
			for i := range texts {
				read(i)
			}
		},
		"shared": func() { ForRange(len(texts), read) },
	} {
		b.Run(name, func(b *testing.B) {
			shortest := time.Hour
			for b.Loop() {
				began := time.Now()
				run()
				shortest = min(shortest, time.Since(began))
			}
			b.ReportMetric(float64(shortest.Microseconds()), "min-µs")
		})
	}
}

package render

import (
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/declared/forecast"
)

// Zones in which nothing changes are named and not counted.
func TestForecastCounts(t *testing.T) {
	change := forecast.Change{Action: forecast.Appears, Name: "www.a.test.", Type: "A", After: &forecast.Data{TTL: 60, Values: []string{"192.0.2.1"}}}
	text := Forecast([]forecast.Zone{
		{ZoneName: "a.test.", Object: forecast.Object{Kind: "DNSZone", Namespace: "dns", Name: "a"}, Changes: []forecast.Change{change}},
		{ZoneName: "b.test.", Object: forecast.Object{Kind: "DNSZone", Namespace: "dns", Name: "b"}, Problem: "it is not permitted there"},
	}, Palette{})
	for _, want := range []string{"DNSZone dns/b would not be served: it is not permitted there\n", "1 RRset in 1 zone: 1 appear, 0 change, 0 vanish\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

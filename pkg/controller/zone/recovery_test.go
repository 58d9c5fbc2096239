package zone

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/membership"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/syncevent"
)

// One zone finds out that a server works again, and wakes the others.
func TestOneZoneLeadsTheOthersBackToAServer(t *testing.T) {
	var woken []string
	r := recoveries{enqueue: func(z membership.ZoneKey) { woken = append(woken, z.Name) }}
	now := time.Unix(1000, 0)
	record := func(zone string, failed bool) (leads, recovered bool) {
		out := syncevent.ServerOutcome{Server: observe.Server{Pod: "a", Addr: netip.MustParseAddrPort("192.0.2.1:53")}}
		if failed {
			out.Err = errors.New("no reply")
		}
		return r.record(membership.ZoneKey{Name: zone}, []syncevent.ServerOutcome{out}, now)
	}
	for _, step := range []struct {
		zone                     string
		failed, leads, recovered bool
	}{
		{"one", true, true, false}, {"two", true, false, false}, {"three", true, false, false}, {"healthy", false, false, false},
		{"two", false, false, true}, {"one", true, true, false},
	} {
		if leads, recovered := record(step.zone, step.failed); leads != step.leads || recovered != step.recovered {
			t.Errorf("%s leads: %v, recovered: %v", step.zone, leads, recovered)
		}
	}
	if len(woken) > 0 {
		t.Errorf("woken before the lead has succeeded: %v", woken)
	}
	if _, recovered := record("one", false); !recovered || !slices.Equal(woken, []string{"three"}) {
		t.Errorf("recovered: %v, woken: %v", recovered, woken)
	}
	record("one", true)
	record("two", true)
	now = now.Add(leadLife)
	second, _ := record("two", true)
	first, _ := record("one", true)
	if !second || first {
		t.Error("a lead that is not heard of is not replaced")
	}
	r.forget(membership.ZoneKey{Name: "two"})
	if !slices.Equal(woken, []string{"three", "one"}) || len(r.servers) > 0 {
		t.Errorf("woken after the lead is gone: %v", woken)
	}
}

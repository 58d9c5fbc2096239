package reconcile

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
)

// One zone finds out that a server works again, and wakes the others.
func TestOneZoneLeadsTheOthersBackToAServer(t *testing.T) {
	var woken []string
	r := recoveries{enqueue: func(z membership.ZoneKey) { woken = append(woken, z.Name) }}
	now := time.Unix(1000, 0)
	record := func(zone string, failed bool) (leads, recovered bool) {
		out := statuswriter.ServerOutcome{Server: observe.Server{Pod: "a", Addr: netip.MustParseAddrPort("192.0.2.1:53")}}
		if failed {
			out.Err = errors.New("no reply")
		}
		since, recovered := r.record(membership.ZoneKey{Name: zone}, []statuswriter.ServerOutcome{out}, now)
		return !since.IsZero(), recovered
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

// Addresses that a DNSProvider had are forgotten, however many: nobody tries them any more.
func TestServersThatNobodyHasAreForgotten(t *testing.T) {
	r := recoveries{enqueue: func(membership.ZoneKey) {}}
	state := &zoneState{secondaries: map[types.NamespacedName]*host.Follower{}}
	for n := range 500 {
		server := observe.Server{Provider: "p", Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, byte(n >> 8), byte(n)}), 53)}
		r.record(membership.ZoneKey{Name: "zone"}, []statuswriter.ServerOutcome{{Server: server, Err: errors.New("no reply")}}, time.Unix(1000, 0).Add(time.Duration(n)*time.Minute))
		*host.Recall[int](&state.hosts, host.IDOf(server))++
		state.secondary(host.IDOf(server))
		state.verificationOf(host.IDOf(server))
		state.keepHosts([]observe.Server{server})
		verified := 0
		state.verified.Range(func(any, any) bool { verified++; return true })
		if known := *host.Recall[int](&state.hosts, host.IDOf(server)); known != 1 || verified != 1 || len(state.secondaries) != 1 {
			t.Fatalf("of the server that the zone has, %d is known; there are %d secondaries, %d of them compared", known, len(state.secondaries), verified)
		}
	}
	if len(r.servers) > 2*int(serverLife/time.Minute) {
		t.Errorf("%d servers fail, of which one is left", len(r.servers))
	}
}

// A server is tried every few seconds at first, whatever is wrong with it, and less often when nobody helps it.
func TestLeadIsPatientWithWhatOnlyAPersonMends(t *testing.T) {
	r := recoveries{enqueue: func(membership.ZoneKey) {}}
	failed := []statuswriter.ServerOutcome{{Server: observe.Server{Addr: netip.MustParseAddrPort("192.0.2.1:53")}, Err: errors.New("no")}}
	for after, want := range map[time.Duration][2]time.Duration{
		0: {leadInterval, leadInterval}, personTimeout - 1: {leadInterval, leadInterval}, personTimeout: {leadInterval, refusedInterval},
	} {
		r.servers = nil
		began := time.Unix(1000, 0)
		r.record(membership.ZoneKey{}, failed, began)
		leads, _ := r.record(membership.ZoneKey{}, failed, began.Add(after))
		for i, failure := range []status.Verdict{{}, status.False("BadKey", "")} {
			event := statuswriter.SyncCompleted{At: began.Add(after), Failure: failure}
			if got := leadPause(leads, event); !about(got, want[i]) {
				t.Errorf("failure %q after %s: the next pass is after %s", failure.Reason, after, got)
			}
			if event.Paused = true; leadPause(leads, event) != idleInterval || leadPause(time.Time{}, event) != idleInterval {
				t.Error("a paused zone, or one that does not lead, is tried soon")
			}
		}
	}
}

func TestPassForgetsFormerServers(t *testing.T) {
	p := newPlatform(t)
	zone := p.declare("team", "team.example", "shared", 0, 0)
	p.states.stateOf(zone).secondary(types.NamespacedName{Namespace: "team", Name: "p 192.0.2.1:53"})
	p.pass(zone)
	if known := p.states.stateOf(zone).secondaries; len(known) > 0 {
		t.Errorf("known are still %v", known)
	}
}

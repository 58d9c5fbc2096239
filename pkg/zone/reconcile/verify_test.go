package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// Both primaries are changed by somebody else, each while it was the one that the secondary followed: the secondary ends on
// the primaries' serial with content that neither has. No serial tells.
func TestPassFindsASecondaryThatMixedTwoPrimaries(t *testing.T) {
	r := newRig(t, 2, bind.Zone{})
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	for n := range 50 { // BIND gives the zone whole when that is less than its changes.
		r.zones.Set(r.a(fmt.Sprint("other-", n), 1, "192.0.2.12"))
	}
	r.until("all are in sync", func(p passResult) bool { return p.event.Servers[2].Current })

	r.byHand(0, "one", "192.0.2.1")
	r.follow("one", "192.0.2.1")
	r.primary[0].Stop()
	r.byHand(1, "two", "192.0.2.2")
	r.zones.Set(r.a("www", 2, "192.0.2.11"))
	r.until("the secondary is asked to transfer the zone again", func(p passResult) bool {
		out := p.event.Servers[2]
		if out.Current {
			t.Fatal("it passes for one in sync")
		}
		return errors.Is(out.Err, host.ErrTransfer) && strings.Contains(out.Err.Error(), "other data than the primaries")
	})
	if served(t, r.secondary, "two") != nil {
		t.Fatal("the secondary has what it should have missed: this test shows nothing")
	}

	// There is no sidecar here to tell it.
	if out, err := r.secondary.Rndc("retransfer", rigZone); err != nil {
		t.Fatal(err, out)
	}
	r.until("it is in sync", func(p passResult) bool { return p.event.Servers[2].Current })
	r.follow("two", "192.0.2.2")

	r.primary[0].Restart(t)
	r.until("the primary that was away has what it missed", func(p passResult) bool { return p.Rested && p.event.Servers[2].Current })
	for _, s := range append(slices.Clone(r.primary), r.secondary) {
		for name, want := range map[string]string{"one": "192.0.2.1", "two": "192.0.2.2", "www": "192.0.2.11"} {
			if got := served(t, s, name); !slices.Equal(got, []string{want}) {
				t.Errorf("%s has %v at %s, want %s", s.Addr, got, name, want)
			}
		}
	}
}

// until makes passes until one is as it should be.
func (r *rig) until(what string, ok func(passResult) bool) {
	r.t.Helper()
	var p passResult
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
		if p = r.pass(); ok(p) {
			return
		}
	}
	r.t.Fatalf("%s: not so; the servers: %+v", what, p.event.Servers)
}

// follow waits until the secondary has the address.
func (r *rig) follow(name, address string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	for !slices.Equal(served(r.t, r.secondary, name), []string{address}) {
		select {
		case <-ctx.Done():
			r.t.Fatalf("the secondary does not get %s at %s", address, name)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// served is what a server answers for a name of the zone.
func served(t testing.TB, s *bind.Server, name string) (got []string) {
	t.Helper()
	return addressesOf(t, s, name+"."+rigZone)
}

// addressesOf returns the addresses that a server answers with.
func addressesOf(t testing.TB, s *bind.Server, name string) (got []string) {
	t.Helper()
	reply, err := wire.Query(t.Context(), s.Addr, name, dns.TypeA)
	if err != nil {
		t.Fatal(err)
	}
	for _, rr := range reply.Msg.Answer {
		got = append(got, rr.(*dns.A).A.String())
	}
	slices.Sort(got)
	return got
}

package registry

import (
	"context"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// level waits until a secondary has what its primary has, past the API server.
func (w *world) level(primary, secondary *bind.Server, zone string) {
	w.Helper()
	serial := func(s *bind.Server) uint32 {
		reply, err := wire.Query(context.Background(), s.Addr, zone, dns.TypeSOA)
		if err != nil || len(reply.Msg.Answer) != 1 {
			return 0
		}
		return reply.Msg.Answer[0].(*dns.SOA).Serial
	}
	w.Eventually("the secondary is level", func() bool { return serial(primary) != 0 && serial(primary) == serial(secondary) })
}

// A change that was on every server before anybody asked about it is in caches nevertheless.
func TestCachesOfAChangeThatNobodySaw(t *testing.T) {
	w := newWorld(t)
	primary, secondary := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7\nother A 192.0.2.7"})
	z, r := w.Declare("www", "other")
	for _, name := range []string{"dnszone.example.test", "arecord.www", "arecord.other"} {
		w.Eventually(name+" is in sync", func() bool { return states(w.get(name)) == allInStep })
		if at := w.get(name).CachesExpireAt; at != nil {
			t.Errorf("%s: nothing has changed, and caches expire at %v", name, at)
		}
	}
	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
	fakekube.Update(t, primary, "example.test.", "new.example.test.", "192.0.2.8")
	if _, err := secondary.Rndc("refresh", "example.test"); err != nil {
		t.Fatal(err)
	}
	w.level(primary, secondary, "example.test.")
	r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
	w.SetProgrammed(z, r)
	w.Apply(r)
	w.Apply(w.Record(z, "new", "192.0.2.8"))

	began := time.Now()
	for name, ttl := range map[string]time.Duration{"arecord.www": 300 * time.Second, "arecord.new": 60 * time.Second} {
		s := w.get(name)
		if got := states(s); got != allInStep {
			t.Fatalf("%s: %s", name, got)
		}
		if at := s.CachesExpireAt; at == nil || at.Time.Before(began.Add(ttl)) || at.Time.After(time.Now().Add(ttl+2*time.Second)) {
			t.Errorf("%s: caches expire at %v, want %s after %v", name, at, ttl, began)
		}
	}
	if at := w.get("arecord.other").CachesExpireAt; at != nil {
		t.Errorf("another record: caches expire at %v", at)
	}
}

package engine

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/wire"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// level waits until a secondary has what its primary has, without the engine.
func (w *world) level(primary, secondary *bind.Server, zone string) {
	w.Helper()
	serial := func(s *bind.Server) uint32 {
		reply, err := wire.Query(context.Background(), s.Addr, zone, dns.TypeSOA)
		if err != nil || len(reply.Msg.Answer) != 1 {
			return 0
		}
		return reply.Msg.Answer[0].(*dns.SOA).Serial
	}
	w.eventually("the secondary is level", func() bool { return serial(primary) != 0 && serial(primary) == serial(secondary) })
}

// A change that was on every server before anybody asked about it is in caches nevertheless.
func TestCachesOfAChangeThatNobodySaw(t *testing.T) {
	w := newWorld(t)
	primary, secondary := lagging(t, w, bind.Zone{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7\nother A 192.0.2.7"})
	z := zone("example.test", "primary", "secondary")
	r := w.record(z, "www", "192.0.2.7")
	w.apply(z)
	w.apply(r)
	w.apply(w.record(z, "other", "192.0.2.7"))
	for _, name := range []string{"dnszone.example.test", "arecord.www", "arecord.other"} {
		w.eventually(name+" is in step", func() bool { return states(w.get(name)) == allInStep })
		if at := w.get(name).CachesExpireAt; at != nil {
			t.Errorf("%s: nothing has changed, and caches expire at %v", name, at)
		}
	}
	update(t, primary, "example.test.", "www.example.test.", "192.0.2.8")
	update(t, primary, "example.test.", "new.example.test.", "192.0.2.8")
	if _, err := secondary.Rndc("refresh", "example.test"); err != nil {
		t.Fatal(err)
	}
	w.level(primary, secondary, "example.test.")
	r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
	w.programmed(z, r)
	w.apply(r)
	w.apply(w.record(z, "new", "192.0.2.8"))

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

// What a server was last seen to have may have been served until it is seen to have something else.
func TestCachesFillWhileNobodyLooks(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := newMemory(newRevisions(func() time.Time { return now }))
	seen := func(state syncv1.ServerState, ttl time.Duration) *metav1.Time {
		s := blank()
		s.UID, s.ObjectRef = "1", syncv1.ObjectReference{Kind: "ARecord", Name: "www"}
		s.Servers = []syncv1.ServerStatus{{State: state}}
		s.Status.InSync = state == syncv1.StateInSync
		s.ObservedAt = new(metav1.NewMicroTime(now))
		if state == syncv1.StateStale {
			s.Servers[0].Observed = []syncv1.RRset{{Name: "www."}}
		}
		if ttl > 0 {
			s.CachesExpireAt = new(metav1.NewTime(now.Add(ttl)))
		}
		m.stamp(s)
		return s.CachesExpireAt
	}
	expect := func(when string, got *metav1.Time, want time.Time) {
		t.Helper()
		if want.IsZero() && got != nil || !want.IsZero() && (got == nil || !got.Time.Equal(want)) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	expect("old data", seen(syncv1.StateStale, time.Hour), now.Add(time.Hour))
	now = now.Add(40 * time.Minute)
	expect("silent after that", seen(syncv1.StateUnreachable, 0), now.Add(time.Hour))
	now = now.Add(40 * time.Minute)
	last := now.Add(time.Hour)
	expect("in step", seen(syncv1.StateInSync, 0), last)
	now = now.Add(40 * time.Minute)
	expect("in step for long", seen(syncv1.StateInSync, 0), last)
	now = now.Add(40 * time.Minute)
	expect("over", seen(syncv1.StateInSync, 0), time.Time{})
}

func TestFormerIsBounded(t *testing.T) {
	var f former
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	server := netip.MustParseAddrPort("192.0.2.1:53")
	key := func(i int) rrset.Key { return rrset.Key{Name: fmt.Sprintf("n%d.example.", i), Type: dns.TypeA} }
	content := func(from, to int, ttl uint32) *observe.Mirror {
		var sets []rrset.RRset
		for i := from; i < to; i++ {
			sets = append(sets, rrset.RRset{Key: key(i), TTL: ttl, Rdata: []string{"192.0.2.1"}})
		}
		return observe.NewMirror("example.", rrset.SOA{Minimum: 60, TTL: 60}, sets...)
	}
	f.note(server, content(0, 10, 600), content(5, 10, 600), now)
	if at := f.keptUntil(server, "example.", key(0)); at.Before(now.Add(600*time.Second)) || at.After(now.Add(601*time.Second)) {
		t.Errorf("a name that is gone is kept until %v", at)
	}
	for _, nobody := range []time.Time{
		f.keptUntil(server, "example.", key(7)), f.keptUntil(server, "other.", key(0)), f.keptUntil(netip.AddrPort{}, "example.", key(0)),
	} {
		if !nobody.IsZero() {
			t.Errorf("what did not change is kept until %v", nobody)
		}
	}
	f.note(server, content(0, formerMost+10, 30), content(0, 0, 0), now)
	if n := len(f.until[zoneOn{server, "example."}]); n != formerMost || f.count != n {
		t.Errorf("%d are kept and %d counted, want %d", n, f.count, formerMost)
	}
	now = now.Add(5 * time.Minute)
	f.note(server, content(0, 1, 600), content(0, 0, 0), now)
	if at := f.keptUntil(server, "example.", key(0)); at.Before(now.Add(600 * time.Second)) {
		t.Errorf("kept until %v, want the later time", at)
	}
	if n := len(f.until[zoneOn{server, "example."}]); n != 5 || f.count != n {
		t.Errorf("%d are left and %d counted, want the five that are not over", n, f.count)
	}
}

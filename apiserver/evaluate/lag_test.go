package evaluate

import (
	"net/netip"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

func TestLagHistory(t *testing.T) {
	server := observe.Peer{Addr: netip.MustParseAddrPort("192.0.2.1:53"), Namespace: "dns"}
	zone := desired.ZoneKey{Namespace: "dns", Name: "a"}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := clocktesting.NewFakeClock(now)
	l := lagHistory{since: cache.NewExpiringWithClock(clock)}
	at := func(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) }
	for i, step := range []struct {
		behind bool
		at     int
		since  int // below 0 for never
	}{
		{false, 0, -1}, {true, 1, 1}, {true, 5, 1}, {true, 0, 0}, {false, 6, -1}, {true, 7, 7},
		{true, 60, 7}, {true, 119, 7}, {true, 300, 300}, // Nobody has looked for hours: it may have caught up in between.
	} {
		if step.at > 0 {
			clock.SetTime(at(step.at))
		}
		got, want := l.behindSince(zoneOnServer{zone, server}, step.behind, at(step.at)), time.Time{}
		if step.since >= 0 {
			want = at(step.since)
		}
		if !got.Equal(want) {
			t.Errorf("step %d: behind since %v, want %v", i, got, want)
		}
	}
	for n, other := range []zoneOnServer{
		{desired.ZoneKey{Namespace: "dns", Name: "b"}, server},
		{desired.ZoneKey{Namespace: "other", Name: "a"}, observe.Peer{Addr: server.Addr, Namespace: "other", Provider: "same"}},
	} {
		if got := l.behindSince(other, true, at(301+n)); !got.Equal(at(301 + n)) {
			t.Errorf("%v is behind since %v", other, got)
		}
	}
}

package evaluate

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

func TestTTLHistoryIsBounded(t *testing.T) {
	var f ttlHistory
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	server := observe.Peer{Addr: netip.MustParseAddrPort("192.0.2.1:53"), Namespace: "dns"}
	key := func(i int) rrset.Key { return rrset.Key{Name: fmt.Sprintf("n%d.example.", i), Type: dns.TypeA} }
	content := func(from, to int, ttl uint32) *observe.Mirror {
		var sets []rrset.RRset
		for i := from; i < to; i++ {
			sets = append(sets, rrset.RRset{Key: key(i), TTL: ttl, Rdata: []string{"192.0.2.1"}})
		}
		return observe.NewMirror("example.", rrset.SOA{Minimum: 60, TTL: 60}, sets...)
	}
	f.recordChange(server, content(0, 10, 600), content(5, 10, 600), now)
	if at := f.keptUntil(Place{Server: server, Zone: "example."}, key(0)); at.Before(now.Add(600*time.Second)) || at.After(now.Add(601*time.Second)) {
		t.Errorf("a name that is gone is kept until %v", at)
	}
	for _, nobody := range []time.Time{
		f.keptUntil(Place{Server: server, Zone: "example."}, key(7)), f.keptUntil(Place{Server: server, Zone: "other."}, key(0)), f.keptUntil(Place{Zone: "example."}, key(0)),
		f.keptUntil(Place{Server: observe.Peer{Addr: server.Addr, Namespace: "other", Provider: "same"}, Zone: "example."}, key(0)),
	} {
		if !nobody.IsZero() {
			t.Errorf("what did not change is kept until %v", nobody)
		}
	}
	f.recordChange(server, content(0, maxReplacedRRsets+10, 30), content(0, 0, 0), now)
	if n := len(f.until[Place{Server: server, Zone: "example."}]); n != maxReplacedRRsets/2 || f.places.Used() != int64(n) {
		t.Errorf("%d are kept and %d counted, want %d", n, f.places.Used(), maxReplacedRRsets/2)
	}
	second, third := observe.Peer{Addr: server.Addr, Namespace: "second"}, observe.Peer{Addr: server.Addr, Namespace: "third"}
	for peer, want := range map[observe.Peer]int{second: maxReplacedRRsets / 2, third: 0} {
		if f.recordChange(second, content(0, maxReplacedRRsets, 30), content(0, 0, 0), now); peer == third {
			f.recordChange(third, content(0, 10, 30), content(0, 0, 0), now)
		}
		if n := len(f.until[Place{Server: peer, Zone: "example."}]); n != want || f.places.Used() > maxReplacedRRsets {
			t.Errorf("of %s %d are kept, of %d; want %d", peer.Namespace, n, f.places.Used(), want)
		}
	}
	now = now.Add(5 * time.Minute)
	f.recordChange(server, content(0, 1, 600), content(0, 0, 0), now)
	if at := f.keptUntil(Place{Server: server, Zone: "example."}, key(0)); at.Before(now.Add(600 * time.Second)) {
		t.Errorf("kept until %v, want the later time", at)
	}
	if n := len(f.until[Place{Server: server, Zone: "example."}]); n != 5 || f.places.Used() != int64(n) {
		t.Errorf("%d are left and %d counted, want the five that are not over", n, f.places.Used())
	}
}

package unreachable_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/zone/unreachable"
	"github.com/lockstep-dns/lockstep/test/named"
)

// What a DNSProvider fails at says nothing about the server that others have at the same address: they are asked, get their answer,
// and read nobody else's words.
func TestFailuresStayWithTheirProvider(t *testing.T) {
	t.Parallel()
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: "shop.example."}}})
	victim, attacker := observe.Peer{Addr: s.Addr, Namespace: "platform"}, observe.Peer{Addr: s.Addr, Namespace: "mallory", Provider: "poison"}
	own := unreachable.Zone{Key: membership.ZoneKey{Namespace: "shop", Name: "shop"}, Name: "shop.example."}
	theirs := unreachable.Zone{Key: membership.ZoneKey{Namespace: "mallory", Name: "p1"}, Name: "p1.poison.example."}
	broken := s.Transfer
	broken.Name = "your.servers..are.mine."
	for name, attack := range map[string]func(*unreachable.Tracker) (silent bool){
		"a key that cannot be used": func(tracker *unreachable.Tracker) bool {
			if seen := tracker.Observe(t.Context(), attacker, theirs, &broken); seen.Err == nil || !strings.Contains(seen.Err.Error(), broken.Name) {
				t.Errorf("the attacker is not told what is wrong: %v", seen.Err)
			}
			return false
		},
		"silence": func(tracker *unreachable.Tracker) bool {
			s.Pause()
			defer s.Resume()
			tracker.Observe(t.Context(), attacker, theirs, &s.Transfer)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := unreachable.NewTracker(observe.New(observe.Options{Timeout: 500 * time.Millisecond}), func(key membership.ZoneKey) {
				if key != theirs.Key {
					t.Errorf("%s is enqueued", key)
				}
			})
			silent := attack(tracker)
			if tracker.IsUnreachable(victim) || tracker.IsUnreachable(attacker) != silent {
				t.Errorf("unreachable: %t for the attacker, want %t, and %t for the victim", tracker.IsUnreachable(attacker), silent, tracker.IsUnreachable(victim))
			}
			if seen := tracker.Observe(t.Context(), victim, own, &s.Transfer); seen.Mirror == nil {
				t.Errorf("the victim's zone: %v", seen.Err)
			}
		})
	}
}

// BenchmarkSilentServer is a worker that asks a server which never answers for the serials of 20 zones, one after the other.
func BenchmarkSilentServer(b *testing.B) {
	silent, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		b.Fatal(err)
	}
	defer silent.Close()
	server := observe.Peer{Addr: silent.LocalAddr().(*net.UDPAddr).AddrPort(), Namespace: "dns"}
	observer := observe.New(observe.Options{})
	askAll := func(b *testing.B, ask func(unreachable.Zone) observe.Observation) {
		for i := range 20 {
			zone := unreachable.Zone{Key: membership.ZoneKey{Namespace: "dns", Name: fmt.Sprint(i)}, Name: fmt.Sprintf("zone%d.example.", i)}
			if seen := ask(zone); seen.Rcode != observe.NoReply {
				b.Fatalf("it answers with %v", seen.Rcode)
			}
		}
	}
	b.Run("asked for each zone", func(b *testing.B) {
		for b.Loop() {
			askAll(b, func(zone unreachable.Zone) observe.Observation {
				return observer.Serial(b.Context(), server, zone.Name, nil)
			})
		}
	})
	b.Run("tracked", func(b *testing.B) {
		for b.Loop() {
			tracker := unreachable.NewTracker(observer, func(membership.ZoneKey) {})
			askAll(b, func(zone unreachable.Zone) observe.Observation { return tracker.Serial(b.Context(), server, zone, nil) })
		}
	})
}

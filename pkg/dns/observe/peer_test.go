package observe_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/named"
)

// peerAt is a server that one user names.
func peerAt(addr netip.AddrPort) observe.Peer { return observe.Peer{Addr: addr} }

// zoneOf is a zone of one namespace.
func zoneOf(name string) observe.Zone { return observe.Zone{Name: name} }

// borrowed is a server as a DNSProvider of another namespace names it.
func borrowed(addr netip.AddrPort) observe.Peer {
	return observe.Peer{Addr: addr, Namespace: "other", Provider: "same"}
}

// TestSilenceBelongsToItsPeer: that a server did not answer one who names it is not held against it by another, and that a
// question could not be sent is held against nobody.
func TestSilenceBelongsToItsPeer(t *testing.T) {
	t.Parallel()
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}})
	o := observe.New(observe.Options{Timeout: 200 * time.Millisecond})
	broken := s.Transfer
	broken.Name = "your.servers..are.mine."
	if seen := o.Serial(t.Context(), borrowed(s.Addr), zone, &broken); seen.Rcode != observe.NoReply || !wire.IsLocal(seen.Err) {
		t.Errorf("a key that cannot be used: %+v", seen)
	}
	if o.IsSilent(peerAt(s.Addr)) || o.IsSilent(borrowed(s.Addr)) {
		t.Error("the server counts as silent after a question that was never sent")
	}
	o.Observe(t.Context(), peerAt(s.Addr), zoneOf(zone), &s.Transfer, time.Now()) // Keeps what is known of the two peers.
	o.Observe(t.Context(), borrowed(s.Addr), zoneOf(zone), &s.Transfer, time.Now())
	s.Pause()
	seen := o.Serial(t.Context(), borrowed(s.Addr), zone, &s.Transfer)
	s.Resume()
	if seen.Rcode != observe.NoReply || !o.IsSilent(borrowed(s.Addr)) {
		t.Errorf("a server that was paused: %+v", seen)
	}
	if o.IsSilent(peerAt(s.Addr)) {
		t.Error("what one DNSProvider sees of a server is held against the server by others")
	}
}

// TestContentIsChargedToItsZone: a namespace that has all the memory that it may have cannot have the zones of others charged to it
// by naming their servers.
func TestContentIsChargedToItsZone(t *testing.T) {
	t.Parallel()
	shared := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Records: hosts(500)}}})
	own := named.Start(t, named.Options{Zones: []named.Zone{{Name: "full.test.", Records: hosts(1000)}}})
	o := observe.New(observe.Options{Limits: observe.Limits{TotalBytes: 600_000}})
	full := observe.Zone{Namespace: "other", Name: "full.test."}
	if seen := o.Observe(t.Context(), borrowed(own.Addr), full, &own.Transfer, time.Now()); seen.Mirror == nil {
		t.Fatal(seen.Err)
	}
	seen := o.Observe(t.Context(), borrowed(shared.Addr), observe.Zone{Namespace: "other", Name: zone}, &shared.Transfer, time.Now())
	if !errors.Is(seen.Err, wire.ErrTooLarge) || !strings.Contains(seen.Err.Error(), "namespace other") {
		t.Fatalf("the other namespace may have more than its half: %v", seen.Err)
	}
	if seen := o.Observe(t.Context(), peerAt(shared.Addr), observe.Zone{Namespace: "bank", Name: zone}, &shared.Transfer, time.Now()); seen.Mirror == nil {
		t.Errorf("the zone of bank: %v", seen.Err)
	}
}

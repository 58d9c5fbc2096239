package sidecar

import (
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/wire"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// named remembers for ten minutes that a primary refused connections. The order to transfer the zone gets past that, and
// is refused while the primary still does.
func TestRetransferReachesAPrimaryThatWasUnreachable(t *testing.T) {
	const zone = "stale.example"
	p := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	s := start(t, v1beta1.RoleSecondary, [2]*wire.Key{p.UpdateKey, p.TransferKey})
	ctx := testContext(t)
	if err := p.client.CreateZone(ctx, p.addr, primaryZone(zone, p.UpdateKey.Name)); err != nil {
		t.Fatal(err)
	}
	proxy := bind.StartProxy(t, p.DNS())
	err := s.client.CreateZone(ctx, s.addr, bindcar.CreateZone{ZoneName: zone, ZoneType: bindcar.Secondary, ZoneConfig: bindcar.ZoneConfig{Primaries: []string{proxy.Addr.String()}}})
	if err != nil {
		t.Fatal(err)
	}
	serial := uint32(firstSerial)
	follows := func() bool { return serialOf(t, s.DNS(), zone) == serial }
	eventually(t, follows)
	for round := range 2 {
		proxy.RefuseTCP()
		serial++
		p.update(t, zone, round)
		eventually(t, func() bool {
			_, _ = s.server.control.Command(ctx, "refresh "+zone)
			return strings.Count(s.Log(), "is unreachable (cached)") > round
		})
		if _, err := s.client.Command(ctx, s.addr, zone, "retransfer"); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("the order to transfer from a primary that accepts no connections: %v", err)
		}
		proxy.AcceptTCP(t)
		if _, err := s.client.Command(ctx, s.addr, zone, "retransfer"); err != nil {
			t.Fatal(err)
		}
		eventually(t, follows)
		if round == 0 {
			serial++
			p.update(t, zone, 10)
			_, _ = s.server.control.Command(ctx, "refresh "+zone)
			eventually(t, follows)
		}
	}
}

// A pod that comes back with another address does not go on asking from its former one.
func TestFormerSourceIsDropped(t *testing.T) {
	const zone = "moved.example"
	_, s := pair(t, zone)
	ctx := testContext(t)
	for source, kept := range map[string]bool{"192.0.2.77": false, "127.0.0.1": true} {
		description, err := s.server.zones.LoadDescription(zone)
		if err != nil {
			t.Fatal(err)
		}
		description.TransferSource = source
		if err := s.server.replaceClause(ctx, description); err != nil {
			t.Fatal(err)
		}
		if err := s.server.reconcile(ctx); err != nil {
			t.Fatal(err)
		}
		if description, err = s.server.zones.LoadDescription(zone); err != nil || (description.TransferSource == source) != kept {
			t.Errorf("source %s is kept: %q, %v", source, description.TransferSource, err)
		}
	}
}

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

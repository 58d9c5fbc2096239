package sidecar

import (
	"context"
	"net/netip"
	"os"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// A zone that somebody deletes past the API comes back with all that was in it, and the readers of notifications hear of it.
func TestZoneThatNamedLostComesBack(t *testing.T) {
	const zone = "lost.example"
	p, s := pair(t, zone)
	ctx := testContext(t)
	p.update(t, zone, 1)
	for _, server := range []*sidecar{p, s} {
		eventually(t, func() bool { return serialOf(t, server.DNS(), zone) == firstSerial+1 })
		watching, stop := context.WithCancel(ctx)
		defer stop()
		go server.server.watchZones(watching)
		notices := server.subscribe(t)
		if _, err := server.server.control.Command(ctx, "delzone "+zone); err != nil {
			t.Fatal(err)
		}
		notices.await(t, zone, 0)
		if got := ask(t, server.DNS(), "h1."+zone, dns.TypeA); len(got.Answer) != 1 {
			t.Errorf("the zone is back without what was added to it: %v", got)
		}
	}
	// So they do of one that is deleted: somebody may want it here again by then.
	notices := s.subscribe(t)
	if err := s.client.DeleteZone(ctx, s.addr, zone, ""); err != nil {
		t.Fatal(err)
	}
	notices.await(t, zone, 0)
	if err := s.server.restoreZones(ctx); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, s.DNS(), zone, dns.TypeSOA); got.Rcode != dns.RcodeRefused {
		t.Errorf("a zone that was deleted through the API is back: %v", got)
	}
}

// A zone that named has lost and that is created again, before it was missed, is there already: with all that was in it.
func TestLostZoneIsNotReplaced(t *testing.T) {
	const zone = "lost.example"
	p, _ := pair(t, zone)
	ctx := testContext(t)
	p.update(t, zone, 1)
	if _, err := p.server.control.Command(ctx, "delzone "+zone); err != nil {
		t.Fatal(err)
	}
	if err := p.client.CreateZone(ctx, p.addr, primaryZone(zone, p.UpdateKey.Name)); !bindcar.IsExists(err) {
		t.Errorf("creating it: %v", err)
	}
	if got := ask(t, p.DNS(), "h1."+zone, dns.TypeA); len(got.Answer) != 1 {
		t.Errorf("the zone is back without what was added to it: %v", got)
	}
	// One whose data cannot be loaded is replaced.
	if _, err := p.server.control.Command(ctx, "delzone "+zone); err != nil {
		t.Fatal(err)
	}
	content := p.server.zones.Files(zone).Content()
	for file, text := range map[string]string{content: "no zone", content + ".jnl": "no journal"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.client.CreateZone(ctx, p.addr, primaryZone(zone, p.UpdateKey.Name)); err != nil {
		t.Errorf("creating it in the place of what cannot be loaded: %v", err)
	}
	if got := ask(t, p.DNS(), "www."+zone, dns.TypeA); len(got.Answer) != 1 {
		t.Errorf("the zone is not served: %v", got)
	}
}

// When named's reply to addzone is lost, named may have the zone: its files stay, and named has it after its next start too.
func TestZoneOfALostReply(t *testing.T) {
	const zone = "unheard.example"
	s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	ctx := testContext(t)
	proxy := namedtest.StartProxy(t, netip.MustParseAddrPort(s.ControlAddr()))
	s.server.control = rndc.NewClient(proxy.Addr.String(), s.Control)
	greeted := false
	proxy.Filter(func(_ string, reply []byte) ([]byte, error) {
		switch {
		case len(reply) == 0: // The upper half of the length.
		case !greeted:
			greeted = true
		default:
			return nil, namedtest.ErrHangUp
		}
		return reply, nil
	})
	if err := s.client.CreateZone(ctx, s.addr, primaryZone(zone, s.UpdateKey.Name)); err == nil {
		t.Fatal("there was no reply, and the zone was created")
	}
	proxy.Filter(func(_ string, reply []byte) ([]byte, error) { return reply, nil })
	s.Restart(t)
	if got := ask(t, s.DNS(), "www."+zone, dns.TypeA); len(got.Answer) != 1 {
		t.Errorf("the zone is not served any more: %v", got)
	}
	if err := s.client.CreateZone(ctx, s.addr, primaryZone(zone, s.UpdateKey.Name)); !bindcar.IsExists(err) {
		t.Errorf("creating it again: %v", err)
	}
}

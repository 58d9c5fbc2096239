package sidecar

import (
	"context"
	"net/netip"
	"os"
	"testing"
	"time"

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
	if err := s.client.DeleteZone(ctx, s.addr, zone, bindcar.Owner{}); err != nil {
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
	for name, connected := range map[string]bool{"new connection": false, "connected": true} {
		t.Run(name, func(t *testing.T) {
			s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
			ctx := testContext(t)
			proxy := s.throughProxy(t)
			if connected {
				if _, err := s.server.control.Command(ctx, "status"); err != nil {
					t.Fatal(err)
				}
			}
			hear := loseReplies(proxy, !connected)
			if err := s.client.CreateZone(ctx, s.addr, primaryZone(zone, s.UpdateKey.Name)); err == nil {
				t.Fatal("there was no reply, and the zone was created")
			}
			hear()
			s.Restart(t)
			if got := ask(t, s.DNS(), "www."+zone, dns.TypeA); len(got.Answer) != 1 {
				t.Errorf("the zone is not served any more: %v", got)
			}
			if err := s.client.CreateZone(ctx, s.addr, primaryZone(zone, s.UpdateKey.Name)); !bindcar.IsExists(err) {
				t.Errorf("creating it again: %v", err)
			}
		})
	}
}

// When named's reply to modzone is lost, named may have the new clause. Nobody may want it any more: the zone gets back what it had, after a
// restart of both, too.
func TestClauseOfALostReply(t *testing.T) {
	const zone = "unheard.example"
	for name, restart := range map[string]bool{"runs on": false, "restarts": true} {
		t.Run(name, func(t *testing.T) {
			s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
			ctx := testContext(t)
			proxy := s.throughProxy(t)
			if err := s.client.CreateZone(ctx, s.addr, primaryZone(zone, s.UpdateKey.Name)); err != nil {
				t.Fatal(err)
			}
			running, stop := context.WithCancel(ctx)
			defer stop()
			go s.server.runReconciler(running)
			time.Sleep(keyCheckInterval / 2) // It has looked at all zones.
			hear := loseReplies(proxy, false)
			if err := s.client.PatchZone(ctx, s.addr, zone, bindcar.PatchZone{AllowTransfer: &[]string{"127.0.0.0/8"}}); err == nil {
				t.Fatal("there was no reply, and the zone was changed")
			}
			transfers := func() bool {
				_, err := wire.Transfer(ctx, s.DNS(), dns.Fqdn(zone), nil, nil)
				return err == nil
			}
			if !transfers() {
				t.Fatal("named has not got the clause")
			}
			hear()
			if restart {
				stop()
				s.stop()
				s.Restart(t)
				s.run(t, nil)
				go s.server.runReconciler(ctx)
			}
			eventually(t, func() bool { return !transfers() })
			told, err := s.client.Zone(ctx, s.addr, zone)
			if err != nil || len(told.AllowTransfer) > 0 {
				t.Errorf("the zone is open to %q, %v", told.AllowTransfer, err)
			}
		})
	}
}

// throughProxy has the sidecar send its commands through a proxy.
func (s *sidecar) throughProxy(t *testing.T) *namedtest.Proxy {
	t.Helper()
	proxy := namedtest.StartProxy(t, netip.MustParseAddrPort(s.ControlAddr()))
	s.server.control = rndc.NewClient(proxy.Addr.String(), s.Control)
	return proxy
}

// loseReplies loses all replies of named's, but the first if that is its greeting, until hear is called.
func loseReplies(proxy *namedtest.Proxy, greets bool) (hear func()) {
	proxy.Filter(func(_ string, reply []byte) ([]byte, error) {
		if !greets {
			return nil, namedtest.ErrHangUp
		}
		greets = len(reply) == 0 // The upper half of the length comes first.
		return reply, nil
	})
	return func() { proxy.Filter(func(_ string, reply []byte) ([]byte, error) { return reply, nil }) }
}

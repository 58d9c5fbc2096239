package sidecar

import (
	"context"
	"testing"

	"github.com/miekg/dns"
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
	if err := s.client.DeleteZone(ctx, s.addr, zone); err != nil {
		t.Fatal(err)
	}
	if err := s.server.restoreZones(ctx); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, s.DNS(), zone, dns.TypeSOA); got.Rcode != dns.RcodeRefused {
		t.Errorf("a zone that was deleted through the API is back: %v", got)
	}
}

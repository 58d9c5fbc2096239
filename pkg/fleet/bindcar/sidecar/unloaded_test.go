package sidecar

import (
	"os"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// A zone whose data cannot be loaded stays unless it may be replaced, and then is loaded once more before that.
func TestUnloadedZoneIsReplaced(t *testing.T) {
	const zone = "broken.example"
	s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	ctx := testContext(t)
	request := primaryZone(zone, s.UpdateKey.Name)
	if err := s.client.CreateZone(ctx, s.addr, request); err != nil {
		t.Fatal(err)
	}
	content := s.server.zones.Files(zone).Content()
	intact, err := os.ReadFile(content)
	if err != nil {
		t.Fatal(err)
	}
	breakZone := func() {
		s.Kill()
		if err := os.WriteFile(content, []byte("no zone"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Restart(t)
		if got := ask(t, s.DNS(), zone, dns.TypeSOA); got.Rcode != dns.RcodeServerFailure {
			t.Fatalf("the zone is served: %v", got)
		}
	}
	breakZone()
	if err := s.client.CreateZone(ctx, s.addr, request); !bindcar.IsExists(err) {
		t.Errorf("creating it: %v", err)
	}
	if err := os.WriteFile(content, append(intact, "\nlegacy."+zone+". 60 IN A 192.0.2.99\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	request.ReplaceUnloaded = true
	if err := s.client.CreateZone(ctx, s.addr, request); !bindcar.IsExists(err) {
		t.Errorf("replacing it when its data can be loaded again: %v", err)
	}
	if got := ask(t, s.DNS(), "legacy."+zone, dns.TypeA); len(got.Answer) != 1 {
		t.Errorf("it has lost what was added to it: %v", got)
	}
	breakZone()
	if err := s.client.CreateZone(ctx, s.addr, request); err != nil {
		t.Errorf("replacing it: %v", err)
	}
	if got := ask(t, s.DNS(), "www."+zone, dns.TypeA); len(got.Answer) != 1 {
		t.Errorf("the zone is not served: %v", got)
	}
}

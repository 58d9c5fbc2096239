package sidecar

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// TestZonesOfOthersStay: a zone that is on the server already is not added, whoever added it, keeps its data, and leaves no
// file of ours behind.
func TestZonesOfOthersStay(t *testing.T) {
	s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	ctx := testContext(t)
	other := filepath.Join(s.Layout.CacheDir, "by-hand")
	text := "$TTL 60\n@ SOA ns h 5 3600 600 604800 60\n@ NS ns\nns A 192.0.2.53\nwww A 192.0.2.77\n"
	if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.server.control.Command(ctx, fmt.Sprintf("addzone %q { type primary; file %q; };", "hand.example", other)); err != nil {
		t.Fatal(err)
	}
	if err := s.client.CreateZone(ctx, s.addr, primaryZone("ours.example", s.UpdateKey.Name)); err != nil {
		t.Fatal(err)
	}
	for zone, kept := range map[string]bool{"hand.example": false, "ours.example": true} {
		if err := s.client.CreateZone(ctx, s.addr, primaryZone(zone, s.UpdateKey.Name)); !bindcar.IsExists(err) {
			t.Errorf("%s: %v", zone, err)
		}
		if s.server.zones.Files(zone).Exist() != kept {
			t.Errorf("%s has files: %v", zone, !kept)
		}
	}
	for name, want := range map[string]string{"www.hand.example": "192.0.2.77", "www.ours.example": "192.0.2.1"} {
		reply := ask(t, s.DNS(), name, dns.TypeA)
		if len(reply.Answer) != 1 || reply.Answer[0].(*dns.A).A.String() != want {
			t.Errorf("%s: %v", name, reply.Answer)
		}
	}
}

// TestStrayFiles: what is left of a zone that the server does not have is no obstacle, and no part of the new one.
func TestStrayFiles(t *testing.T) {
	s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	for _, suffix := range []string{"", ".jnl", ".jbk", ".signed", ".signed.jnl"} {
		if err := os.WriteFile(s.server.zones.Files("stray.example").Content()+suffix, []byte("of an older time"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.client.CreateZone(testContext(t), s.addr, primaryZone("stray.example", s.UpdateKey.Name)); err != nil {
		t.Fatal(err)
	}
	if len(ask(t, s.DNS(), "www.stray.example", dns.TypeA).Answer) != 1 {
		t.Error("the zone is not served")
	}
}

// TestRecordsAreNotImplemented: callers of the public sidecar's routes for records are told so, not that the zone is missing.
func TestRecordsAreNotImplemented(t *testing.T) {
	s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		if code := s.request(t, bindcar.ControllerIdentity, method, "/zones/some.example/records"); code != http.StatusNotImplemented {
			t.Errorf("%s: %d", method, code)
		}
	}
}

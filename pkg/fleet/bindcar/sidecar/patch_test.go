package sidecar

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// TestZoneSettings: what was set is told again, by the zone's own description and by the list of all.
func TestZoneSettings(t *testing.T) {
	p, s := pair(t, "set.example")
	ctx := testContext(t)
	told := func(s *sidecar) bindcar.Zone {
		t.Helper()
		zone, err := s.client.Zone(ctx, s.addr, "set.example")
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.client.Zones(ctx, s.addr)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]bindcar.Zone{zone}, list.Items); diff != "" {
			t.Errorf("the list has another zone (-zone +list):\n%s", diff)
		}
		return zone
	}
	want := bindcar.Zone{
		Name: "set.example", Type: bindcar.Primary, Serial: ptrTo(uint32(firstSerial)), FilePath: p.server.zones.Files("set.example").Content(), Added: true,
		AlsoNotify: []string{s.DNS().String()}, AllowTransfer: []string{}, Primaries: []string{},
	}
	if diff := cmp.Diff(want, told(p)); diff != "" {
		t.Errorf("the primary (-want +got):\n%s", diff)
	}
	wantSecondary := bindcar.Zone{
		Name: "set.example", Type: bindcar.Secondary, Serial: ptrTo(uint32(firstSerial)), FilePath: s.server.zones.Files("set.example").Content(), Added: true,
		AlsoNotify: []string{}, AllowTransfer: []string{}, Primaries: []string{p.DNS().String()},
	}
	if diff := cmp.Diff(wantSecondary, told(s)); diff != "" {
		t.Errorf("the secondary (-want +got):\n%s", diff)
	}

	change := bindcar.PatchZone{AlsoNotify: &[]string{"[2001:db8::1]:53", "192.0.2.1"}, AllowTransfer: &[]string{"192.0.2.0/24"}}
	if err := p.client.PatchZone(ctx, p.addr, "set.example", change); err != nil {
		t.Fatal(err)
	}
	want.AlsoNotify, want.AllowTransfer = *change.AlsoNotify, *change.AllowTransfer
	if diff := cmp.Diff(want, told(p)); diff != "" {
		t.Errorf("after a change (-want +got):\n%s", diff)
	}

	// A zone that has an owner keeps it. That of an older version has no UID.
	for _, owner := range [][2]string{{"team/zone", ""}, {"evil/zone", "evil"}, {"team/zone", "uid"}, {"team/zone", "later"}} {
		if err := p.client.PatchZone(ctx, p.addr, "set.example", bindcar.PatchZone{Owner: &owner[0], OwnerUID: &owner[1]}); err != nil {
			t.Fatal(err)
		}
	}
	want.Owner, want.OwnerUID = "team/zone", "uid"
	if diff := cmp.Diff(want, told(p)); diff != "" {
		t.Errorf("with an owner (-want +got):\n%s", diff)
	}

	if err := os.WriteFile(filepath.Join(p.Layout.ZonesDir, "set.example"+".json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	want.AlsoNotify, want.AllowTransfer, want.Primaries, want.Owner, want.OwnerUID = nil, nil, nil, "", ""
	if diff := cmp.Diff(want, told(p)); diff != "" {
		t.Errorf("with a damaged description (-want +got):\n%s", diff)
	}
}

// TestPatchPrimaries: a running secondary turns to its new primaries at once, keeps its data when they do not answer,
// and stays with them when named is started again.
func TestPatchPrimaries(t *testing.T) {
	const zone = "move.example"
	a, s := pair(t, zone)
	b := start(t, v1beta1.RolePrimary, [2]*wire.Key{a.UpdateKey, a.TransferKey})
	request := primaryZone(zone, b.UpdateKey.Name)
	request.ZoneConfig.SOA.Serial = firstSerial + 100
	request.ZoneConfig.AlsoNotify = []string{s.DNS().String()}
	if err := b.client.CreateZone(testContext(t), b.addr, request); err != nil {
		t.Fatal(err)
	}
	primaries := func(list ...string) {
		t.Helper()
		if err := s.client.PatchZone(testContext(t), s.addr, zone, bindcar.PatchZone{Primaries: &list}); err != nil {
			t.Fatal(err)
		}
	}
	follows := func(serial uint32) {
		t.Helper()
		eventually(t, func() bool { return serialOf(t, s.DNS(), zone) == serial })
	}
	sub := s.subscribe(t)

	primaries(b.DNS().String())
	follows(firstSerial + 100)
	sub.await(t, zone, firstSerial+100)
	b.update(t, zone, 1)
	follows(firstSerial + 101)
	if n := len(ask(t, s.DNS(), "h1."+zone, dns.TypeA).Answer); n != 1 {
		t.Errorf("%d answers", n)
	}

	primaries("127.0.0.1:1")
	b.update(t, zone, 2)
	eventually(t, func() bool {
		return s.wasTold(firstSerial+102) && strings.Contains(s.Log(), "zone "+zone+"/IN: refresh: failure trying primary 127.0.0.1#1 ")
	})
	if serial := serialOf(t, s.DNS(), zone); serial != firstSerial+101 {
		t.Errorf("serial %d while no primary answers", serial)
	}

	primaries("127.0.0.1:1", b.DNS().String())
	follows(firstSerial + 102)
	s.Restart(t)
	b.update(t, zone, 3)
	follows(firstSerial + 103)
	sub.await(t, zone, firstSerial+103)
}

// TestPatchPrimary: a running primary tells other servers and lets others transfer, without a restart and with all that
// was changed since the zone was added; the sidecar goes on hearing of it.
func TestPatchPrimary(t *testing.T) {
	const zone = "tell.example"
	p, s := pair(t, zone)
	sub := p.subscribe(t)
	patch := func(change bindcar.PatchZone) {
		t.Helper()
		if err := p.client.PatchZone(testContext(t), p.addr, zone, change); err != nil {
			t.Fatal(err)
		}
	}
	transfers := func() bool {
		_, err := wire.Transfer(testContext(t), p.DNS(), dns.Fqdn(zone), nil, nil)
		return err == nil
	}
	p.update(t, zone, 1)
	sub.await(t, zone, firstSerial+1)
	eventually(t, func() bool { return serialOf(t, s.DNS(), zone) == firstSerial+1 })

	patch(bindcar.PatchZone{AlsoNotify: &[]string{}})
	p.update(t, zone, 2)
	sub.await(t, zone, firstSerial+2)
	p.update(t, zone, 3)
	sub.await(t, zone, firstSerial+3)
	requireUntold(t, p, s, zone, firstSerial+2)
	if serial := serialOf(t, s.DNS(), zone); serial != firstSerial+1 {
		t.Errorf("the secondary has serial %d though nobody told it", serial)
	}

	patch(bindcar.PatchZone{AlsoNotify: &[]string{s.DNS().String()}})
	p.update(t, zone, 4)
	sub.await(t, zone, firstSerial+4)
	eventually(t, func() bool { return serialOf(t, s.DNS(), zone) == firstSerial+4 })

	if transfers() {
		t.Error("anybody may transfer")
	}
	patch(bindcar.PatchZone{AllowTransfer: &[]string{"127.0.0.0/8"}})
	if !transfers() {
		t.Error("an address that was allowed may not transfer")
	}
	patch(bindcar.PatchZone{AllowTransfer: &[]string{}})
	if transfers() {
		t.Error("an address that was allowed before still transfers")
	}
	p.Restart(t)
	p.update(t, zone, 5)
	sub.await(t, zone, firstSerial+5)
	eventually(t, func() bool { return serialOf(t, s.DNS(), zone) == firstSerial+5 })
	for _, name := range []string{"h1", "h2", "h3", "h4", "h5", "www"} {
		if len(ask(t, s.DNS(), name+"."+zone, dns.TypeA).Answer) != 1 {
			t.Errorf("%s is gone", name)
		}
	}
}

// requireUntold demands that a primary has not told a secondary of a change, only of the one before. The primary's sidecar was told of the one after it: by then named
// has sent all NOTIFYs of the former. Ours comes after them, and its answer says that they were handled.
func requireUntold(t *testing.T, p, s *sidecar, zone string, serial uint32) {
	t.Helper()
	if err := wire.Notify(testContext(t), s.DNS(), dns.Fqdn(zone), serial-1, p.TransferKey); err != nil {
		t.Fatal(err)
	}
	if !s.wasTold(serial - 1) {
		t.Fatalf("the secondary's log does not say what it is told:\n%s", s.Log())
	}
	if s.wasTold(serial) {
		t.Errorf("the primary tells the secondary of serial %d", serial)
	}
}

// wasTold reports whether a secondary has got a NOTIFY with the serial, and may follow those who send them.
func (s *sidecar) wasTold(serial uint32) bool {
	return regexp.MustCompile(fmt.Sprintf(`notify from .*: serial %d\b`, serial)).MatchString(s.Log())
}

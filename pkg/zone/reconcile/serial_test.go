package reconcile

import (
	"math"
	"net/netip"
	"slices"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// setSerial declares the lowest serial of the zone.
func (r *rig) setSerial(serial int64) {
	r.zone = r.zone.DeepCopy()
	r.zone.Generation++
	r.zone.Spec.SOARecord.Serial = serial
	r.zones.Set(r.zone)
}

// serial is that of all primaries.
func (r *rig) serial() (serial uint32) {
	r.t.Helper()
	for i, s := range r.primary {
		got := r.observer.Serial(r.t.Context(), peerOf(s), rigZone, nil).Serial
		if i > 0 && got != serial {
			r.t.Fatalf("the primaries are at %d and %d", serial, got)
		}
		serial = got
	}
	return serial
}

// A serial that is raised is the zone's at once, on all primaries, and changes go on from there. What is more than 2^31-1 ahead is
// reached in two steps, each of which the secondaries follow.
func TestRaisedSerial(t *testing.T) {
	r := newRig(t, 2, bind.Zone{Serial: 7})
	address := []string{"192.0.2.10", "192.0.2.11"}
	follows := func(p passResult) bool { return p.event.Servers[2].Current }
	r.zones.Set(r.a("www", 1, address[0]))
	r.until("the secondary follows", follows)
	for n, step := range []int64{2026112601, 2026112601 + rrset.MaxSerialStep, math.MaxUint32} {
		r.setSerial(step)
		r.pass()
		if got := r.serial(); int64(got) != step {
			t.Fatalf("raised to %d: the serial is %d", step, got)
		}
		r.until("the secondary follows", follows)
		if p := r.pass(); !p.Rested {
			t.Errorf("at %d it does not rest: %+v", step, p.event)
		}
		if n == 0 {
			r.zones.Set(r.a("www", 2, address[1]))
			if r.pass(); r.serial() != uint32(step+1) {
				t.Errorf("the change after %d has %d", step, r.serial())
			}
		}
	}
	r.setSerial(math.MaxUint32 - 1)
	if r.pass(); r.serial() != math.MaxUint32 {
		t.Errorf("a lower serial: %d", r.serial())
	}
}

// The SOA of a zone is raised after a failure, too.
func TestRaisedSerialIsTriedAgain(t *testing.T) {
	r := newRig(t, 1, bind.Zone{Serial: 7})
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.pass()
	updates := r.updates
	r.setSerial(3000000000)
	r.updates = brokenUpdates{}
	r.pass()
	r.updates = updates
	if r.pass(); r.serial() < 3000000000 {
		t.Errorf("the serial is %d", r.serial())
	}
}

// A secondary outside that holds a later serial of its former primary transfers nothing from ours until the serial is raised.
func TestGuestAhead(t *testing.T) {
	r := newRig(t, 1, bind.Zone{Serial: 7})
	former := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: rigZone, Serial: 2026112601}}, Transfer: r.primary[0].Transfer})
	outside := bind.Start(t, bind.Options{
		Role: bind.Secondary, Primary: former, AlsoPrimaries: []netip.AddrPort{r.primary[0].Addr}, Zones: []bind.Zone{{Name: rigZone}},
	})
	outcome := r.guest(outside, v1beta1.ReadByTransfer)
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.until("the secondary is ahead", func(p passResult) bool { return outcome(p).Serial == 2026112601 })
	former.Stop()
	r.setSerial(2026112602)
	r.until("the secondary follows", func(p passResult) bool { return outcome(p).Current })
	if got := served(t, outside, "www"); !slices.Equal(got, []string{"192.0.2.10"}) {
		t.Errorf("www: %v", got)
	}
}

// A server may have a zone on serial 0, which is one as any other (RFC 1982 section 3): many zone files begin with it. It has the zone, and
// its secondaries are measured by it.
func TestZoneOnSerialZero(t *testing.T) {
	for _, writers := range []v1beta1.WriterMode{v1beta1.WritersExclusive, v1beta1.WritersShared} {
		t.Run(string(writers), func(t *testing.T) {
			r := newBareRig(t)
			key, follower := bind.NewKey("transfer."), bind.Reserve(t)
			outside := bind.Start(t, bind.Options{Transfer: key, AlsoNotify: []netip.AddrPort{follower}, Zones: []bind.Zone{{
				Name: rigZone, File: "$TTL 300\n@ SOA hidden hostmaster 0 7200 900 1209600 60\n@ NS ns1\nns1 A 127.0.0.2\n",
			}}})
			secondary := bind.Start(t, bind.Options{Role: bind.Secondary, Addr: follower, Primary: outside, Zones: []bind.Zone{{Name: rigZone}}})
			r.zone.Spec.TTL, r.zone.Spec.NameServerIPs = new(int64(300)), nil
			r.zone.Spec.SOARecord = v1beta1.SOARecord{
				PrimaryNS: "hidden.example.test.", HiddenPrimary: true, AdminEmail: "hostmaster.example.test.",
				Refresh: 7200, Retry: 900, Expire: 1209600, NegativeTTL: new(int64(60)),
			}
			r.zone.Spec.NameServers = []v1beta1.NameServer{{Hostname: "ns1.example.test.", IPv4Address: "127.0.0.2"}}
			r.zones.Set(r.zone)
			p := r.provide("corp", []*bind.Server{outside}, secondary)
			p.Spec.RFC2136.Writers = writers
			r.scope.servers = serving.AddProviders(nil, []*v1beta1.DNSProvider{p})
			r.until("both servers have the zone", func(p passResult) bool {
				return !slices.ContainsFunc(p.event.Servers, func(s statuswriter.ServerOutcome) bool { return !s.HasZone || !s.Current })
			})
			if serial := r.look(outside).SOA.Serial; serial != 0 {
				t.Errorf("the serial is %d, although there was nothing to change", serial)
			}
			if p := r.pass(); !p.event.SerialKnown || p.event.Serial != 0 {
				t.Errorf("the serial of the pass is %d, known: %v", p.event.Serial, p.event.SerialKnown)
			}
		})
	}
}

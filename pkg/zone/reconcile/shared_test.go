package reconcile

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile/primary"
	"github.com/lockstep-dns/lockstep/pkg/zone/statuswriter"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// share adds a DNSProvider with a primary to which others write as well.
func (r *rig) share(name string, primary *bind.Server, secondaries ...*bind.Server) {
	r.t.Helper()
	p := r.provide(name, []*bind.Server{primary}, secondaries...)
	p.Spec.RFC2136.Writers = v1beta1.WritersShared
	r.scope.servers = slices.DeleteFunc(r.scope.servers, func(s observe.Server) bool { return s.Provider == name })
	r.scope.servers = serving.AddProviders(r.scope.servers, []*v1beta1.DNSProvider{p})
}

// newSharedRig is a zone whose only primary is a server that others write to as well.
func newSharedRig(t testing.TB, records string) (*rig, *bind.Server) {
	r := newBareRig(t)
	outside := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: rigZone, Records: records}}})
	r.share("corp", outside)
	r.primary = []*bind.Server{outside}
	return r, outside
}

// look reads a server's zone.
func (r *rig) look(s *bind.Server) *observe.Mirror {
	r.t.Helper()
	seen := r.observer.Observe(r.t.Context(), observe.Peer{Addr: s.Addr}, observe.Zone{Name: rigZone}, &s.Transfer, time.Now())
	if seen.Mirror == nil {
		r.t.Fatalf("%s: %v", seen.Message(), seen.Err)
	}
	return seen.Mirror
}

// mustSync is a pass after which nothing is missing.
func (r *rig) mustSync() passResult {
	r.t.Helper()
	p := r.pass()
	if !p.event.Programmed.Holds() || len(p.event.Unprogrammed) > 0 {
		r.t.Fatalf("%+v, unprogrammed %v", p.event.Programmed, p.event.Unprogrammed)
	}
	return p
}

// Where others write as well, the apex and what nobody declares stay as they are, and the server counts the serial.
func TestSharedPrimaryKeepsItsApexAndItsSerial(t *testing.T) {
	r, outside := newSharedRig(t, "legacy 300 A 192.0.2.77\nother 300 TXT \"theirs\"\n")
	before := r.look(outside)
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	p := r.mustSync()
	r.holds("www", "192.0.2.10")
	r.holds("legacy", "192.0.2.77")
	after := r.look(outside)
	want := before.SOA
	want.Serial++
	if after.SOA != want {
		t.Errorf("the SOA was %+v and is %+v", before.SOA, after.SOA)
	}
	ns := rrset.Key{Name: rigZone, Type: dns.TypeNS}
	had, _ := before.Get(ns)
	if has, _ := after.Get(ns); !has.Equal(had) {
		t.Errorf("the NS records at the apex were %v and are %v", had, has)
	}
	if p.event.Serial != after.SOA.Serial || !p.event.Servers[0].Current {
		t.Errorf("serial %d, server %+v", p.event.Serial, p.event.Servers[0])
	}
	foreign := []rrset.Key{{Name: "legacy." + rigZone, Type: dns.TypeA}, {Name: "other." + rigZone, Type: dns.TypeTXT}}
	if p.event.Foreign != 2 || !slices.Equal(p.event.ForeignSample, foreign) {
		t.Errorf("foreign: %d, %v", p.event.Foreign, p.event.ForeignSample)
	}
	if p = r.pass(); !p.Rested {
		t.Errorf("it does not rest: %+v", p.event)
	}
}

// NS records at the apex are not ours there, and are not said to be there.
func TestSharedPrimaryTakesNoNameServers(t *testing.T) {
	r, outside := newSharedRig(t, "")
	before := r.look(outside)
	record := &v1beta1.NSRecord{ObjectMeta: r.a("apex", 1, "192.0.2.1").ObjectMeta}
	record.Spec.Name, record.Spec.Nameserver = "@", "ns9.example.net."
	r.zones.Set(record)
	key := rrset.Key{Name: rigZone, Type: dns.TypeNS}
	for range 2 {
		p := r.pass()
		if why := p.event.Unprogrammed[key]; why.Reason != status.Unsupported || !strings.Contains(why.Message, "ns9.example.net.") {
			t.Errorf("%+v", p.event.Unprogrammed)
		}
	}
	if !r.look(outside).SameContent(before) {
		t.Error("the zone has changed")
	}
}

// Only what objects declared is deleted: not at the annotation for pruning either.
func TestSharedPrimaryLosesOnlyWhatObjectsDeclared(t *testing.T) {
	r, outside := newSharedRig(t, "legacy 300 A 192.0.2.77\n")
	r.zone = r.zone.DeepCopy()
	r.zone.Annotations = map[string]string{v1beta1.PruneAnnotation: "true"}
	r.zones.Set(r.zone)
	www := r.a("www", 1, "192.0.2.10")
	r.zones.Set(www)
	r.mustSync()
	gone := www.DeepCopy()
	gone.DeletionTimestamp = new(metav1.Now())
	r.zones.Set(gone)
	if p := r.mustSync(); len(p.event.Released) != 1 {
		t.Errorf("released: %v", p.event.Released)
	}
	r.holds("www")
	r.holds("legacy", "192.0.2.77")
	if address, there := r.look(outside).Get(rrset.Key{Name: "ns1." + rigZone, Type: dns.TypeA}); !there {
		t.Errorf("the address of their name server is gone: %v", address)
	}
}

// Writes of others at other names hinder nothing, at any time; one at a name of ours is seen and undone, and none is overwritten
// unseen.
func TestSharedPrimaryWithOthersWritingMeanwhile(t *testing.T) {
	r, outside := newSharedRig(t, "")
	var all []string
	for n := range 40 {
		all = append(all, fmt.Sprintf("n%d", n))
		r.zones.Set(r.a(all[n], 1, "192.0.2.10"))
	}
	apply := r.updates
	r.updates = meddlerBefore{apply, sync.OnceFunc(func() { r.byHand(0, "elsewhere", "192.0.2.98") })}
	r.mustSync()
	for _, name := range append(all, "elsewhere") {
		address := "192.0.2.10"
		if name == "elsewhere" {
			address = "192.0.2.98"
		}
		r.holds(name, address)
	}
	// Somebody always changes one of the RRsets first: all others are brought along, in the same pass.
	var n int
	r.updates = meddlerBefore{apply, func() { n++; r.byHand(0, "n7", fmt.Sprintf("192.0.2.%d", 100+n)) }}
	for _, name := range all {
		r.zones.Set(r.a(name, 2, "192.0.2.20"))
	}
	p := r.pass()
	if n != primary.MaxTries || len(p.event.Unprogrammed) != 1 || !p.event.Programmed.Holds() {
		t.Fatalf("%d tries, %+v, unprogrammed %v", n, p.event.Programmed, p.event.Unprogrammed)
	}
	for key, why := range p.event.Unprogrammed {
		if key.Name != "n7."+rigZone || !strings.Contains(why.Message, "somebody else changes it") {
			t.Errorf("%v: %+v", key, why)
		}
	}
	for _, name := range all {
		if name != "n7" {
			r.holds(name, "192.0.2.20")
		}
	}
	r.holds("n7", "192.0.2.10", "192.0.2.101", "192.0.2.102", "192.0.2.103")
	r.updates = apply
	r.mustSync()
	r.holds("n7", "192.0.2.20")
	serial := r.look(outside).SOA.Serial
	r.byHand(0, "n3", "")
	if p = r.mustSync(); p.event.Drift != 1 || p.event.Serial == serial {
		t.Errorf("drift %d, serial %d", p.event.Drift, p.event.Serial)
	}
	r.holds("n3", "192.0.2.20")
}

// An update whose reply is lost is followed by a look, not by a second update.
func TestSharedPrimaryWhenAReplyIsLost(t *testing.T) {
	r, outside := newSharedRig(t, "")
	proxy := bind.StartProxy(t, outside.Addr)
	r.scope.servers[0].Addr = proxy.Addr
	r.mustSync()
	var lost atomic.Bool
	proxy.Filter(func(network string, reply []byte) ([]byte, error) {
		m := new(dns.Msg)
		if network == "tcp" && m.Unpack(reply) == nil && m.Opcode == dns.OpcodeUpdate && lost.CompareAndSwap(false, true) {
			return nil, bind.ErrHangUp
		}
		return reply, nil
	})
	serial := r.look(outside).SOA.Serial
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.mustSync()
	r.holds("www", "192.0.2.10")
	if now := r.look(outside).SOA.Serial; !lost.Load() || now != serial+1 {
		t.Errorf("lost %t; the serial went from %d to %d", lost.Load(), serial, now)
	}
}

// Beside an instance, each has its own serial and what others put there; a secondary is measured by the primary that it follows.
func TestSharedPrimaryBesideAnInstance(t *testing.T) {
	r := newRig(t, 1, bind.Zone{Records: "inside 300 A 192.0.2.66\n"})
	key := bind.NewKey("isp-transfer.")
	follower := bind.Reserve(t)
	outside := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: rigZone, Records: "legacy 300 A 192.0.2.77\n"}}, Transfer: key, AlsoNotify: []netip.AddrPort{follower}})
	secondary := bind.Start(t, bind.Options{Role: bind.Secondary, Addr: follower, Primary: outside, Zones: []bind.Zone{{Name: rigZone}}})
	r.share("corp", outside, secondary)
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	p := r.mustSync()
	inside := r.look(r.primary[0])
	if p.event.Serial != inside.SOA.Serial || inside.SOA.Serial == r.look(outside).SOA.Serial {
		t.Errorf("the zone's serial is %d, the instance's %d, that of others %d", p.event.Serial, inside.SOA.Serial, r.look(outside).SOA.Serial)
	}
	for n := 0; ; n++ {
		if !slices.ContainsFunc(p.event.Servers, func(s statuswriter.ServerOutcome) bool { return !s.Current }) {
			break
		}
		if n == 1000 {
			t.Fatalf("not all become current: %+v", p.event.Servers)
		}
		p = r.mustSync()
	}
	for _, at := range []*bind.Server{r.primary[0], outside} {
		if got := served(t, at, "www"); !slices.Equal(got, []string{"192.0.2.10"}) {
			t.Errorf("%s has %v at www", at.Addr, got)
		}
	}
	for _, c := range []struct {
		at         *observe.Mirror
		has, lacks string
	}{{inside, "inside", "legacy"}, {r.look(outside), "legacy", "inside"}} {
		if _, there := c.at.Get(rrset.Key{Name: c.has + "." + rigZone, Type: dns.TypeA}); !there {
			t.Errorf("%s is gone", c.has)
		}
		if _, there := c.at.Get(rrset.Key{Name: c.lacks + "." + rigZone, Type: dns.TypeA}); there {
			t.Errorf("%s was copied", c.lacks)
		}
	}
	if p = r.pass(); !p.Rested {
		t.Errorf("it does not rest: %+v", p.event)
	}
	r.primary = []*bind.Server{outside}
	r.byHand(0, "www", "192.0.2.99")
	if p = r.mustSync(); p.event.Drift != 1 || p.event.Serial != inside.SOA.Serial {
		t.Errorf("drift %d, serial %d", p.event.Drift, p.event.Serial)
	}
	r.holds("www", "192.0.2.10")
}

// Without a primary the secondaries are still asked, and have the zone.
func TestSecondariesAreAskedWithoutAPrimary(t *testing.T) {
	r := newRig(t, 1, bind.Zone{})
	first := r.pass()
	r.zone.Status.Serial = new(int64(first.event.Serial))
	r.zones.Set(r.zone)
	r.scope.instances, r.scope.servers = r.scope.instances[1:], r.scope.servers[1:]
	result := r.pass()
	if s := result.event.Servers; result.event.Programmed.Reason != status.NoPrimaryInstances || len(s) != 1 || s[0].Serial == 0 || s[0].Err != nil {
		t.Errorf("%+v, servers %+v", result.event.Programmed, s)
	}
}

// A prerequisite does not compare TTLs (RFC 2136 section 2.4), but what is read before an update does: a TTL that somebody else has
// changed is drift, also while the data is declared anew. Our own changes are none.
func TestSharedPrimaryWithOthersChangingATTL(t *testing.T) {
	r, outside := newSharedRig(t, "")
	key := rrset.Key{Name: "www." + rigZone, Type: dns.TypeA}
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.mustSync()
	declared, _ := r.look(outside).Get(key)
	setTTL := func(ttl uint32) {
		r.byHand(0, "www", "")
		set, _ := r.look(outside).Get(key)
		if len(set.Rdata) > 0 {
			t.Fatalf("it still has %v", set)
		}
		r.insert(0, fmt.Sprintf("www.%s %d A %s", rigZone, ttl, declared.Rdata[0]))
	}
	for i, c := range []struct {
		byHand     bool
		generation int64
		address    string
		drift      int
	}{
		{true, 1, "192.0.2.10", 1},
		{true, 2, "192.0.2.11", 1},
		{false, 3, "192.0.2.12", 0},
	} {
		if c.byHand {
			setTTL(declared.TTL + 7)
		}
		r.zones.Set(r.a("www", c.generation, c.address))
		p := r.mustSync()
		declared.Rdata = []string{c.address}
		if has, _ := r.look(outside).Get(key); p.event.Drift != c.drift || !has.Equal(declared) {
			t.Errorf("case %d: drift %d, the server has %v", i, p.event.Drift, has)
		}
	}
}

// Where others write as well, no other version keeps out an update whose reply was lost: it takes effect after its record was deleted and
// nothing was seen of it. The data goes for as long as that may be.
func TestLateUpdateOfADeletedRecord(t *testing.T) {
	r, _ := newSharedRig(t, "")
	now := time.Now()
	r.now = func() time.Time { return now }
	direct, late := r.updates, &lateUpdates{updateClient: r.updates}
	r.updates = late
	r.zones.Set(r.a("www", 1, "192.0.2.10"))
	r.pass()
	r.updates = direct
	gone := r.a("www", 1, "192.0.2.10")
	gone.DeletionTimestamp = new(metav1.Now())
	r.zones.Set(gone)
	if p := r.mustSync(); len(p.event.Released) != 1 {
		t.Errorf("released: %v", p.event.Released)
	}
	r.zones.Remove(gone)
	r.holds("www")
	now = now.Add(host.ForeignRest)
	r.pass()
	late.arrive()
	r.holds("www", "192.0.2.10")
	for range 2 {
		now = now.Add(host.ForeignRest)
		r.mustSync()
		r.holds("www")
	}

	r.byHand(0, "www", "192.0.2.77") // It is somebody else's by now.
	now = now.Add(host.ForeignRest)
	if p := r.mustSync(); p.event.Foreign != 1 {
		t.Errorf("%d RRsets are foreign", p.event.Foreign)
	}
	r.holds("www", "192.0.2.77")
}

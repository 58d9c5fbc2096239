package observe_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	"github.com/lockstep-dns/lockstep/test/named"
)

const zone = "example.test."

func hosts(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "h%d A 198.51.100.%d\n", i, i%250)
	}
	return b.String()
}

// TestWhatServersAnswer tells the states of a server apart.
func TestWhatServersAnswer(t *testing.T) {
	t.Parallel()
	primary := named.Start(t, named.Options{Zones: []named.Zone{
		{Name: zone, Serial: 7},
		{Name: "parent.test.", Records: "child NS ns.child\nns.child A 192.0.2.1\nalias CNAME parent.test."},
	}})
	down := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}})
	orphan := named.Start(t, named.Options{Role: named.Secondary, Primary: down, NoWait: true, Zones: []named.Zone{{Name: "nowhere.test."}}})
	silent := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}})
	silent.Pause()
	down.Stop()
	unknown := named.NewKey("unknown.")
	// A cache answers with the SOA, and without the AA bit.
	proxy := named.StartProxy(t, primary.Addr)
	proxy.Filter(func(_ string, reply []byte) ([]byte, error) {
		m := new(dns.Msg)
		if err := m.Unpack(reply); err != nil {
			return nil, err
		}
		m.Authoritative = false
		return m.Pack()
	})
	cache := *primary
	cache.Addr = proxy.Addr

	for name, tc := range map[string]struct {
		server        *named.Server
		zone          string
		key           *wire.Key
		reason        string
		rcode         int
		aa            bool
		authoritative bool
		message       string
	}{
		"served":            {primary, zone, &primary.Transfer, "", dns.RcodeSuccess, true, true, ""},
		"not served":        {primary, "other.test.", &primary.Transfer, observe.ReasonRefused, dns.RcodeRefused, false, false, "the server refuses to answer for the zone: it does not have it, or does not admit the question"},
		"delegated":         {primary, "child.parent.test.", &primary.Transfer, observe.ReasonLame, dns.RcodeSuccess, false, false, "the server is not authoritative for the zone: it does not serve it"},
		"parent served":     {primary, "none.parent.test.", &primary.Transfer, observe.ReasonNotLoaded, dns.RcodeNameError, true, false, "the server answers NXDOMAIN: the zone is not loaded"},
		"no data":           {primary, "ns1.parent.test.", &primary.Transfer, observe.ReasonLame, dns.RcodeSuccess, true, false, "the server is not authoritative for the zone: it does not serve it"},
		"from a cache":      {&cache, zone, &primary.Transfer, observe.ReasonLame, dns.RcodeSuccess, false, false, "the server is not authoritative for the zone: it does not serve it"},
		"an alias":          {primary, "alias.parent.test.", &primary.Transfer, observe.ReasonLame, dns.RcodeSuccess, true, false, "the server is not authoritative for the zone: it does not serve it"},
		"never transferred": {orphan, "nowhere.test.", &primary.Transfer, observe.ReasonNotLoaded, dns.RcodeServerFailure, false, false, "the server answers SERVFAIL: the zone is not loaded"},
		"stopped":           {down, zone, &primary.Transfer, observe.ReasonUnreachable, observe.NoReply, false, false, "connection refused"},
		"silent":            {silent, zone, &primary.Transfer, observe.ReasonUnreachable, observe.NoReply, false, false, "no answer in time"},
		"unknown key":       {primary, zone, &unknown, observe.ReasonTransferFailed, dns.RcodeSuccess, true, true, "the zone's content could not be transferred: BADKEY: the server does not know the key"},
		"no key":            {primary, zone, nil, observe.ReasonTransferFailed, dns.RcodeSuccess, true, true, "the zone's content could not be transferred: answered REFUSED"},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe.New(observe.Options{Timeout: 2 * time.Second})
			obs := o.Observe(t.Context(), peerAt(tc.server.Addr), zoneOf(tc.zone), tc.key, time.Now())
			if obs.Reason() != tc.reason || obs.Rcode != tc.rcode || obs.AA != tc.aa || obs.Authoritative != tc.authoritative || obs.Message() != tc.message {
				t.Errorf("%q, rcode %d, AA %t, authoritative %t, %q", obs.Reason(), obs.Rcode, obs.AA, obs.Authoritative, obs.Message())
			}
			if (obs.Mirror != nil) != (tc.reason == "") || (obs.Err != nil) != (tc.rcode == observe.NoReply || tc.reason == observe.ReasonTransferFailed) {
				t.Errorf("mirror %v, error %v", obs.Mirror, obs.Err)
			}
			if tc.authoritative && (obs.Serial != 7 || obs.SOA.Serial != 7) {
				t.Errorf("serial %d", obs.Serial)
			}
		})
	}
}

// writer changes a primary's zone.
type writer struct {
	t        *testing.T
	provider *rfc2136.Provider
	target   rfc2136.Target
	soa      rrset.SOA
}

func newWriter(t *testing.T, primary *named.Server, soa rrset.SOA) *writer {
	w := &writer{t: t, provider: rfc2136.New(rfc2136.Options{}), soa: soa}
	w.target = rfc2136.Target{Server: primary.Addr, Zone: zone, Key: &primary.Update}
	t.Cleanup(w.provider.Close)
	return w
}

func (w *writer) create(names ...string) {
	w.t.Helper()
	var c plan.Changes
	for _, n := range names {
		c.Create = append(c.Create, rrset.New(rrset.Key{Name: n + "." + zone, Type: dns.TypeA}, 60, "192.0.2.1"))
	}
	want := w.soa
	want.Serial++
	result, err := w.provider.Apply(w.t.Context(), w.target, c, w.soa, want)
	if err != nil || len(result.Refused) > 0 {
		w.t.Fatal(result, err)
	}
	w.soa = result.SOA
}

// TestFleet: every server's mirror follows, and shares memory where the servers agree.
func TestFleet(t *testing.T) {
	t.Parallel()
	primary, secondaries := named.StartFleet(t, 2, named.Zone{Name: zone, Serial: 7, Records: hosts(2000)})
	o := observe.New(observe.Options{})
	look := func(s *named.Server) observe.Observation {
		return o.Observe(t.Context(), peerAt(s.Addr), zoneOf(zone), &primary.Transfer, time.Now())
	}
	first := look(primary)
	if first.Mirror == nil || first.Mirror.Len() != 2002 || first.Mirror.SOA.Serial != 7 || first.RTT <= 0 {
		t.Fatalf("%+v", first)
	}
	w := newWriter(t, primary, first.SOA)
	for i := range 5 {
		w.create(fmt.Sprint("new", i))
		start := time.Now()
		for _, s := range append(secondaries, primary) {
			var obs observe.Observation
			for obs.Serial != w.soa.Serial && time.Since(start) < time.Minute {
				obs = look(s)
			}
			if obs.Mirror == nil || obs.Mirror.SOA != w.soa || obs.Mirror.Len() != 2003+i {
				t.Fatalf("%+v", obs)
			}
			full := observe.New(observe.Options{}).Observe(t.Context(), peerAt(s.Addr), zoneOf(zone), &primary.Transfer, time.Now())
			if !full.Mirror.SameContent(obs.Mirror) {
				t.Fatal("mirror and full transfer differ")
			}
		}
	}
	if first.Mirror.Len() != 2002 || first.Mirror.SOA.Serial != 7 {
		t.Error("the first mirror has changed")
	}
}

// TestNotifyTransfersAtOnce: a secondary that its primary does not notify follows when it is notified by us.
func TestNotifyTransfersAtOnce(t *testing.T) {
	t.Parallel()
	primary := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Serial: 7}}}) // notifies nobody
	secondary := named.Start(t, named.Options{Role: named.Secondary, Primary: primary, Zones: []named.Zone{{Name: zone}}})
	o := observe.New(observe.Options{})
	w := newWriter(t, primary, o.Serial(t.Context(), peerAt(primary.Addr), zone, nil).SOA)
	w.create("new")
	if obs := o.Serial(t.Context(), peerAt(secondary.Addr), zone, nil); obs.Serial != 7 || strings.Contains(primary.Log(), "sending notif") {
		t.Fatalf("the secondary is at %d without NOTIFY", obs.Serial)
	}
	start := time.Now()
	if err := wire.Notify(t.Context(), secondary.Addr, zone, w.soa.Serial, &primary.Transfer); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the secondary has transferred the zone", func() bool {
		return o.Serial(t.Context(), peerAt(secondary.Addr), zone, nil).Serial == w.soa.Serial
	})
	t.Logf("the secondary was level %s after NOTIFY", time.Since(start))
}

func TestMaxAgeAndInvalidate(t *testing.T) {
	t.Parallel()
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Serial: 7}}})
	o := observe.New(observe.Options{})
	look := func(maxAge time.Duration) observe.Observation {
		return o.Observe(t.Context(), peerAt(s.Addr), zoneOf(zone), &s.Transfer, time.Now().Add(-maxAge))
	}
	first := look(0)
	if again := look(time.Minute); again.At != first.At || again.Mirror != first.Mirror {
		t.Error("an observation that is young enough was made again")
	}
	second := look(0)
	if !second.At.After(first.At) || second.Mirror != first.Mirror {
		t.Error("an unchanged zone: the question must be new and the mirror the same")
	}

	// The content changes under an unchanged serial, as happens when somebody edits the file of another server.
	file := filepath.Join(s.Dir, "example.test.zone")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := os.WriteFile(file, append(content, "extra A 192.0.2.77\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Restart(t)
	if obs := look(0); obs.Mirror.Len() != 2 {
		t.Errorf("%d RRsets: the SOA is equal, so that nothing is transferred", obs.Mirror.Len())
	}
	o.Invalidate(peerAt(s.Addr), zoneOf(zone))
	if obs := look(time.Minute); obs.Mirror.Len() != 3 {
		t.Errorf("%d RRsets after Invalidate", obs.Mirror.Len())
	}

	// The zone is made anew with a lower serial: equality counts, not order.
	s.Stop()
	if err := os.WriteFile(file, []byte(strings.Replace(string(content), " 7 ", " 3 ", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Restart(t)
	if obs := look(0); obs.Mirror == nil || obs.Serial != 3 || obs.Mirror.Len() != 2 || obs.Mirror.SOA.Serial != 3 {
		t.Errorf("%+v", obs)
	}

	o.Forget(peerAt(s.Addr), zoneOf(zone))
	if obs := look(time.Minute); !obs.At.After(second.At) || obs.Mirror == nil {
		t.Errorf("%+v", obs)
	}
}

// TestZoneMovesOnWhileItIsLookedAt: what is told is of one moment, that of the transfer.
func TestZoneMovesOnWhileItIsLookedAt(t *testing.T) {
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Serial: 7}}})
	w := newWriter(t, s, observe.New(observe.Options{}).Serial(t.Context(), peerAt(s.Addr), zone, nil).SOA)
	proxy := named.StartProxy(t, s.Addr)
	create := sync.OnceFunc(func() { w.create("new") })
	proxy.Filter(func(network string, reply []byte) ([]byte, error) {
		if network == "udp" {
			create()
		}
		return reply, nil
	})
	obs := observe.New(observe.Options{Timeout: time.Minute}).Observe(t.Context(), peerAt(proxy.Addr), zoneOf(zone), &s.Transfer, time.Now())
	create() // waits for the proxy's
	if obs.Mirror == nil || obs.SOA != w.soa || obs.Serial != w.soa.Serial || obs.Mirror.SOA != w.soa || obs.Mirror.Len() != 3 {
		t.Errorf("%+v, want serial %d with the new name", obs, w.soa.Serial)
	}
}

// TestSOAChangesOnItsSerial: another SOA is another content, whatever the serial.
func TestSOAChangesOnItsSerial(t *testing.T) {
	t.Parallel()
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Serial: 7}}})
	o := observe.New(observe.Options{})
	look := func() observe.Observation {
		return o.Observe(t.Context(), peerAt(s.Addr), zoneOf(zone), &s.Transfer, time.Now())
	}
	first := look()
	file := filepath.Join(s.Dir, "example.test.zone")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := os.WriteFile(file, []byte(strings.Replace(string(content), " 86400 60", " 86400 30", 1)+"extra A 192.0.2.77\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Restart(t)
	if obs := look(); obs.Serial != first.Serial || obs.SOA.Minimum != 30 || obs.Mirror == nil || obs.Mirror.SOA != obs.SOA || obs.Mirror.Len() != first.Mirror.Len()+1 {
		t.Errorf("%+v after %+v", obs, first)
	}
}

// TestReplaced: whoever wants to know what a server had before is told, also when it was not built on.
func TestReplaced(t *testing.T) {
	t.Parallel()
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Serial: 7}}})
	var told []string
	o := observe.New(observe.Options{Replaced: func(server observe.Peer, was, is *observe.Mirror) {
		told = append(told, fmt.Sprint(server == peerAt(s.Addr), was.SOA.Serial, was.Len(), is.SOA.Serial, is.Len()))
	}})
	look := func() observe.Observation {
		return o.Observe(t.Context(), peerAt(s.Addr), zoneOf(zone), &s.Transfer, time.Now())
	}
	first := look()
	look()
	if len(told) > 0 {
		t.Errorf("nothing has changed, and told of %q", told)
	}
	w := newWriter(t, s, first.SOA)
	w.create("one")
	look()
	w.create("two")
	o.Invalidate(peerAt(s.Addr), zoneOf(zone))
	last := look()
	want := []string{
		fmt.Sprint(true, first.Serial, 2, first.Serial+1, 3),
		fmt.Sprint(true, first.Serial+1, 3, last.Serial, 4),
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDeadServer: a thousand zones on a server that does not answer take no longer than a few, and no caller waits
// beyond its deadline.
func TestDeadServer(t *testing.T) {
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}})
	s.Pause()
	ask := func(ctx context.Context, o *observe.Observer, n int) {
		start := time.Now()
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				name := fmt.Sprintf("z%d.test.", i)
				obs := o.Observe(ctx, peerAt(s.Addr), zoneOf(name), &s.Transfer, time.Now().Add(-time.Second))
				if e, ok := errors.AsType[*wire.Error](obs.Err); obs.Reason() != observe.ReasonUnreachable || !ok || e.Zone != name {
					t.Errorf("%s: %v", name, obs.Err)
				}
			})
		}
		wg.Wait()
		t.Logf("%d zones took %s", n, time.Since(start))
	}
	started := time.Now()
	o := observe.New(observe.Options{Timeout: time.Second, Questions: 8})
	if ask(t.Context(), o, 1000); time.Since(started) > time.Minute { // One after the other they take two.
		t.Error("every zone waits for the server")
	}
	s.Resume()
	eventually(t, "the server answers again", func() bool { return o.Serial(t.Context(), peerAt(s.Addr), zone, nil).Authoritative })
	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	ask(ctx, observe.New(observe.Options{Timeout: time.Hour, Questions: 8}), 100) // It returns: nobody waits for the hour.
}

// TestSharedWork: callers at the same time share the work, and one that gives up does not spoil it for the others.
func TestSharedWork(t *testing.T) {
	t.Parallel()
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Records: hosts(5000)}}})
	o := observe.New(observe.Options{})
	hasty, cancel := context.WithCancel(t.Context())
	cancel()
	if obs := o.Observe(hasty, peerAt(s.Addr), zoneOf(zone), &s.Transfer, time.Now()); obs.Rcode != observe.NoReply || !errors.Is(obs.Err, context.Canceled) {
		t.Errorf("%+v", obs)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if obs := o.Observe(t.Context(), peerAt(s.Addr), zoneOf(zone), &s.Transfer, time.Now().Add(-time.Minute)); obs.Mirror == nil {
				t.Errorf("%+v", obs)
			}
		})
	}
	wg.Wait()
	if n := strings.Count(s.Log(), "AXFR started"); n != 1 {
		t.Errorf("%d transfers", n)
	}
}

// TestIdle: what nobody asks for is dropped.
func TestIdle(t *testing.T) {
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}})
	for idleAfter, kept := range map[time.Duration]int{time.Minute: 1, 50 * time.Millisecond: 0} {
		o := observe.New(observe.Options{IdleAfter: idleAfter})
		o.Observe(t.Context(), peerAt(s.Addr), zoneOf(zone), &s.Transfer, time.Now())
		eventually(t, fmt.Sprintf("%d kept after %s", kept, idleAfter), func() bool { return o.Kept() == kept })
	}
}

func BenchmarkSerial(b *testing.B) {
	s := named.Start(b, named.Options{Zones: []named.Zone{{Name: zone}}})
	o := observe.New(observe.Options{})
	for name, key := range map[string]*wire.Key{"unsigned": nil, "signed": &s.Transfer} {
		b.Run(name, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if obs := o.Serial(b.Context(), peerAt(s.Addr), zone, key); obs.Err != nil {
						b.Fatal(obs.Err)
					}
				}
			})
		})
	}
}

// BenchmarkThousandZones: a thousand unchanged zones, all asked for at once.
func BenchmarkThousandZones(b *testing.B) {
	var zones []named.Zone
	for i := range 1000 {
		zones = append(zones, named.Zone{Name: fmt.Sprintf("z%d.test.", i)})
	}
	s := named.Start(b, named.Options{Zones: zones})
	o := observe.New(observe.Options{})
	look := func() {
		var wg sync.WaitGroup
		for _, z := range zones {
			wg.Go(func() {
				if obs := o.Observe(b.Context(), peerAt(s.Addr), zoneOf(z.Name), &s.Transfer, time.Now()); obs.Mirror == nil {
					b.Error(obs.Message())
				}
			})
		}
		wg.Wait()
	}
	look() // transfers them
	for b.Loop() {
		look()
	}
}

func BenchmarkFullTransfer100k(b *testing.B) {
	s := named.Start(b, named.Options{Zones: []named.Zone{{Name: zone, Records: hosts(100_000)}}})
	o := observe.New(observe.Options{})
	for b.Loop() {
		o.Forget(peerAt(s.Addr), zoneOf(zone))
		if obs := o.Observe(b.Context(), peerAt(s.Addr), zoneOf(zone), &s.Transfer, time.Now()); obs.Mirror.Len() != 100_002 {
			b.Fatal(obs)
		}
	}
}

// BenchmarkObserveAfterChange: one record changes in a zone of 100,000, and we look.
func BenchmarkObserveAfterChange(b *testing.B) {
	s := named.Start(b, named.Options{Zones: []named.Zone{{Name: zone, Records: hosts(100_000)}}})
	o := observe.New(observe.Options{})
	p := rfc2136.New(rfc2136.Options{})
	defer p.Close()
	target := rfc2136.Target{Server: s.Addr, Zone: zone, Key: &s.Update}
	look := func(addr netip.AddrPort) observe.Observation {
		return o.Observe(b.Context(), peerAt(addr), zoneOf(zone), &s.Transfer, time.Now())
	}
	soa := look(s.Addr).SOA
	n := 0
	for b.Loop() {
		b.StopTimer()
		want := soa
		want.Serial++
		c := plan.Changes{Create: []rrset.RRset{rrset.New(rrset.Key{Name: fmt.Sprintf("new%d.%s", n, zone), Type: dns.TypeA}, 60, "192.0.2.1")}}
		if _, err := p.Apply(b.Context(), target, c, soa, want); err != nil {
			b.Fatal(err)
		}
		soa, n = want, n+1
		b.StartTimer()
		if obs := look(s.Addr); obs.SOA != soa {
			b.Fatal(obs)
		}
	}
}

// TestAsk: a server's answer to whoever asks, as its zone has it or not; however large, and also if strangers may not ask.
func TestAsk(t *testing.T) {
	t.Parallel()
	var texts strings.Builder
	for i := range 100 {
		fmt.Fprintf(&texts, "large TXT \"%03d%s\"\n", i, strings.Repeat("x", 250))
	}
	s := named.Start(t, named.Options{Zones: []named.Zone{
		{Name: zone, Records: "www A 192.0.2.7\nalias CNAME www\n" + texts.String()},
		{Name: "private.test.", Records: "www A 192.0.2.7", Extra: `allow-query { key "transfer."; };`},
		{Name: "below." + zone},
	}, NoWait: true}) // It does not answer strangers that it is ready.
	o := observe.New(observe.Options{})
	for name, differs := range map[string]bool{
		"www." + zone + " A": false, "alias." + zone + " CNAME": false, "large." + zone + " TXT": false, "none." + zone + " A": false,
		"www.private.test. A": false, "below." + zone + " SOA": true,
	} {
		owner, rrtype, _ := strings.Cut(name, " ")
		k := rrset.Key{Name: owner, Type: dns.StringToType[rrtype]}
		in := zone
		if strings.HasSuffix(owner, "private.test.") {
			in = "private.test."
		}
		var obs observe.Observation
		for until := time.Now().Add(time.Minute); obs.Mirror == nil; {
			if obs = o.Observe(t.Context(), peerAt(s.Addr), zoneOf(in), &s.Transfer, time.Now()); time.Now().After(until) {
				t.Fatal(obs.Err)
			}
		}
		held, found := obs.Mirror.Get(k)
		if !found {
			held = rrset.RRset{Key: k}
		}
		a := o.Ask(t.Context(), peerAt(s.Addr), k, held, &s.Transfer)
		if a.Held = held; a.Differs() != differs {
			t.Errorf("%s: %d values of %d, %v, %v", name, len(a.Served.Rdata), len(held.Rdata), a.Rcode, a.Err)
		}
	}
	if a := o.Ask(t.Context(), peerAt(s.Addr), rrset.Key{Name: "www.private.test.", Type: dns.TypeA}, rrset.RRset{}, nil); a.Rcode != dns.RcodeRefused {
		t.Errorf("without a key: %+v", a)
	}
	if a := o.Ask(t.Context(), peerAt(s.Addr), rrset.Key{Name: "large." + zone, Type: dns.TypeTXT}, rrset.RRset{}, nil); a.Rcode != observe.NoReply {
		t.Errorf("much larger than expected: %d values", len(a.Served.Rdata))
	}
}

// TestContentBelongsToItsKey: content that was fetched with one key is not given to the holder of another, known or not, and that holder's
// questions do not cost the first one anything.
func TestContentBelongsToItsKey(t *testing.T) {
	t.Parallel()
	powerless, unknown := named.NewKey("powerless."), named.NewKey("unknown.")
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Records: hosts(3)}}, Keys: []wire.Key{powerless}})
	o := observe.New(observe.Options{})
	first := o.Observe(t.Context(), peerAt(s.Addr), zoneOf(zone), &s.Transfer, time.Now())
	if first.Mirror == nil {
		t.Fatal(first.Err)
	}
	for name, key := range map[string]*wire.Key{"powerless": &powerless, "unknown": &unknown, "none": nil} {
		for _, since := range []time.Time{{}, time.Now()} {
			if got := o.Observe(t.Context(), peerAt(s.Addr), zoneOf(zone), key, since); got.Mirror != nil || got.Err == nil {
				t.Errorf("with the key %q: %d RRsets, %v", name, got.Mirror.Len(), got.Err)
			}
		}
	}
	if again := o.Observe(t.Context(), peerAt(s.Addr), zoneOf(zone), &s.Transfer, time.Now()); again.Mirror != first.Mirror {
		t.Error("the content was transferred again")
	}
	if o.Forget(peerAt(s.Addr), zoneOf(zone)); o.Kept() != 0 {
		t.Errorf("%d kept after Forget", o.Kept())
	}
}

// AskWho names the server that answers, over both protocols.
func TestAskWho(t *testing.T) {
	t.Parallel()
	one := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Serial: 7}}})
	another := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Serial: 8}}})
	for _, tcp := range []bool{false, true} {
		a, b := observe.AskWho(t.Context(), one.Addr, zone, tcp, 5*time.Second), observe.AskWho(t.Context(), another.Addr, zone, tcp, 5*time.Second)
		if a.Serial != 7 || b.Serial != 8 || a.ServerID == "" || a.ServerID == b.ServerID {
			t.Errorf("TCP %v: %+v, %+v", tcp, a, b)
		}
		if o := observe.AskAsClient(t.Context(), another.Addr, zone, tcp, 5*time.Second); o.ServerID != "" {
			t.Errorf("asked for nothing but the zone, it is %q", o.ServerID)
		}
	}
}

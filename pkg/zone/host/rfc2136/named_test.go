package rfc2136_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	"github.com/lockstep-dns/lockstep/test/named"
)

const zone = "example.test."

// bench is a primary under test.
type bench struct {
	t        *testing.T
	server   *named.Server
	observer *observe.Observer
	provider *rfc2136.Provider
	target   rfc2136.Target
}

func newBench(t *testing.T, records string) *bench {
	t.Helper()
	return newBenchWith(t, named.Options{Zones: []named.Zone{{Name: zone, Serial: 100, Records: records}}})
}

func newBenchWith(t *testing.T, o named.Options) *bench {
	t.Helper()
	s := named.Start(t, o)
	b := &bench{t: t, server: s, observer: observe.New(observe.Options{}), provider: rfc2136.New(rfc2136.Options{})}
	b.target = rfc2136.Target{Server: s.Addr, Zone: zone, Key: &s.Update}
	t.Cleanup(b.provider.Close)
	return b
}

// read tells what the server holds.
func (b *bench) read() *observe.Mirror {
	b.t.Helper()
	obs := b.observer.Observe(b.t.Context(), observe.Peer{Addr: b.server.Addr}, observe.Zone{Name: zone}, &b.server.Transfer, time.Now())
	if obs.Mirror == nil {
		b.t.Fatalf("reading the zone: %s %v", obs.Message(), obs.Err)
	}
	return obs.Mirror
}

// apply sends changes against what the server holds now, with the serial that follows.
func (b *bench) apply(c plan.Changes) (rfc2136.Result, error) {
	b.t.Helper()
	have := b.read().SOA
	return b.provider.Apply(b.t.Context(), b.target, c, have, ahead(have, rfc2136.Batches(c)))
}

func ahead(soa rrset.SOA, n int) rrset.SOA {
	soa.Serial += uint32(n)
	return soa
}

func set(name, rrtype string, ttl uint32, rdata ...string) rrset.RRset {
	if name == "@" {
		name = zone
	} else {
		name += "." + zone
	}
	return rrset.New(rrset.Key{Name: name, Type: dns.StringToType[rrtype]}, ttl, rdata...)
}

func key(name, rrtype string) rrset.Key { return set(name, rrtype, 0, "x").Key }

// show is the content in lines, without ns1's address and the apex NS.
func show(m *observe.Mirror) []string {
	var lines []string
	for s := range m.All() {
		name := strings.TrimSuffix(s.Name, "."+zone)
		if name == "ns1" {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s %d %s %s", name, s.TTL, dns.TypeToString[s.Type], strings.Join(s.Rdata, " | ")))
	}
	slices.Sort(lines)
	return lines
}

func TestApply(t *testing.T) {
	t.Parallel()
	const records = `
a 300 A 192.0.2.1
a 300 A 192.0.2.2
a 300 A 192.0.2.3
t 300 TXT "one"
c 300 CNAME a
m 300 MX 10 a
`
	ns := "example.test. 300 NS ns1.example.test."
	base := []string{"a 300 A 192.0.2.1 | 192.0.2.2 | 192.0.2.3", "c 300 CNAME a.example.test.", ns, "m 300 MX 10 a.example.test.", `t 300 TXT "one"`}
	replace := func(old, replacement string) []string {
		lines := slices.Clone(base)
		i := slices.Index(lines, old)
		lines = slices.Delete(lines, i, i+1)
		if replacement != "" {
			lines = append(lines, strings.Split(replacement, "\n")...)
		}
		slices.Sort(lines)
		return lines
	}
	for name, tc := range map[string]struct {
		changes plan.Changes
		want    []string
	}{
		"create": {plan.Changes{Create: []rrset.RRset{set("n", "AAAA", 60, "2001:db8::1")}}, append(slices.Clone(base), "n 60 AAAA 2001:db8::1")},
		"delete": {plan.Changes{Delete: []rrset.RRset{set("m", "MX", 300, "10 a.example.test.")}}, replace("m 300 MX 10 a.example.test.", "")},
		"one value of three": {plan.Changes{
			UpdateOld: []rrset.RRset{set("a", "A", 300, "192.0.2.1", "192.0.2.2", "192.0.2.3")},
			UpdateNew: []rrset.RRset{set("a", "A", 300, "192.0.2.1", "192.0.2.9", "192.0.2.3")},
		}, replace(base[0], "a 300 A 192.0.2.1 | 192.0.2.3 | 192.0.2.9")},
		"TTL": {plan.Changes{
			UpdateOld: []rrset.RRset{set("a", "A", 300, "192.0.2.1", "192.0.2.2", "192.0.2.3")},
			UpdateNew: []rrset.RRset{set("a", "A", 60, "192.0.2.1", "192.0.2.2", "192.0.2.3")},
		}, replace(base[0], "a 60 A 192.0.2.1 | 192.0.2.2 | 192.0.2.3")},
		"TTL and values": {plan.Changes{
			UpdateOld: []rrset.RRset{set("a", "A", 300, "192.0.2.1", "192.0.2.2", "192.0.2.3")},
			UpdateNew: []rrset.RRset{set("a", "A", 60, "192.0.2.1")},
		}, replace(base[0], "a 60 A 192.0.2.1")},
		"CNAME target": {plan.Changes{
			UpdateOld: []rrset.RRset{set("c", "CNAME", 300, "a.example.test.")},
			UpdateNew: []rrset.RRset{set("c", "CNAME", 300, "m.example.test.")},
		}, replace(base[1], "c 300 CNAME m.example.test.")},
		"CNAME becomes A and TXT": {plan.Changes{
			Create: []rrset.RRset{set("c", "A", 60, "192.0.2.7"), set("c", "TXT", 60, `"x"`)},
			Delete: []rrset.RRset{set("c", "CNAME", 300, "a.example.test.")},
		}, replace(base[1], "c 60 A 192.0.2.7\nc 60 TXT \"x\"")},
		"A becomes CNAME": {plan.Changes{
			Create: []rrset.RRset{set("a", "CNAME", 60, "m.example.test.")},
			Delete: []rrset.RRset{set("a", "A", 300, "192.0.2.1", "192.0.2.2", "192.0.2.3")},
		}, replace(base[0], "a 60 CNAME m.example.test.")},
		"all apex NS replaced": {plan.Changes{
			UpdateOld: []rrset.RRset{set("@", "NS", 300, "ns1.example.test.")},
			UpdateNew: []rrset.RRset{set("@", "NS", 60, "ns.other.test.", "ns2.example.test.")},
			Create:    []rrset.RRset{set("ns2", "A", 60, "192.0.2.5")},
			Delete:    []rrset.RRset{set("ns1", "A", 300, "192.0.2.1")},
		}, replace(ns, "example.test. 60 NS ns.other.test. | ns2.example.test.\nns2 60 A 192.0.2.5")},
		"text that needs escapes": {plan.Changes{
			UpdateOld: []rrset.RRset{set("t", "TXT", 300, `"one"`)},
			UpdateNew: []rrset.RRset{set("t", "TXT", 300, `"a\\b\"c;d" "e"`)},
		}, replace(base[4], `t 300 TXT "a\\b\"c;d" "e"`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, records)
			result, err := b.apply(tc.changes)
			if err != nil || len(result.Refused) > 0 || result.Sent != 1 {
				t.Fatalf("result %+v, error %v", result, err)
			}
			m := b.read()
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, show(m)); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
			if m.SOA != result.SOA || m.SOA.Serial != 101 {
				t.Errorf("SOA %+v, result's %+v", m.SOA, result.SOA)
			}
			if full := fresh(t, b); !full.SameContent(m) {
				t.Errorf("IXFR and AXFR differ: %q, %q", show(m), show(full))
			}
		})
	}
}

// fresh is a mirror made by AXFR alone.
func fresh(t *testing.T, b *bench) *observe.Mirror {
	t.Helper()
	obs := observe.New(observe.Options{}).Observe(t.Context(), observe.Peer{Addr: b.server.Addr}, observe.Zone{Name: zone}, &b.server.Transfer, time.Now())
	if obs.Mirror == nil {
		t.Fatal(obs.Message())
	}
	return obs.Mirror
}

func TestSOA(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	have := b.read().SOA
	want := have
	want.Serial, want.MName, want.Minimum, want.TTL = 4_000_000_000-2_000_000_000, "ns1.example.test.", 17, 42
	result, err := b.provider.Apply(t.Context(), b.target, plan.Changes{SOA: true}, have, want)
	if err != nil || result.SOA != want || b.read().SOA != want {
		t.Fatalf("result %+v, error %v, SOA %+v", result, err, b.read().SOA)
	}
	// Nothing to change and nothing to send.
	if result, err := b.provider.Apply(t.Context(), b.target, plan.Changes{}, want, want); err != nil || result.Sent != 0 {
		t.Errorf("result %+v, error %v", result, err)
	}
	// Serials go round (RFC 1982), and never backwards.
	for _, serial := range []uint32{4_000_000_000, 1, 5} {
		have, want.Serial = want, serial
		if _, err := b.provider.Apply(t.Context(), b.target, plan.Changes{}, have, want); err != nil || b.read().SOA.Serial != serial {
			t.Fatalf("to serial %d: %v, at %d", serial, err, b.read().SOA.Serial)
		}
	}
	back := want
	back.Serial = 4
	if _, err := b.provider.Apply(t.Context(), b.target, plan.Changes{}, want, back); !errors.Is(err, rfc2136.ErrSerial) {
		t.Errorf("backwards: %v", err)
	}
}

func TestManyBatches(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	var c plan.Changes
	for i := range 3500 {
		c.Create = append(c.Create, set(fmt.Sprintf("h%04d-%s", i, strings.Repeat("x", 57)), "A", 60, "192.0.2.1"))
	}
	var values []string
	for i := range 62 {
		values = append(values, fmt.Sprintf("%q %q", fmt.Sprint(i), strings.Repeat("y", 250))+strings.Repeat(" \""+strings.Repeat("z", 250)+"\"", 3))
	}
	c.Create = append(c.Create, set("big", "TXT", 60, values...)) // close to the 64 KiB that an RRset may have
	n := rfc2136.Batches(c)
	result, err := b.apply(c)
	if err != nil || result.Sent < 5 || result.Sent > n || n > 3*result.Sent {
		t.Fatalf("%d of %d messages, %v, %v", result.Sent, n, result.Refused, err)
	}
	m := b.read()
	if m.Len() != 3503 || m.SOA.Serial != 100+uint32(n) || m.SOA != result.SOA {
		t.Errorf("%d RRsets, SOA %+v, result's %+v", m.Len(), m.SOA, result.SOA)
	}
	if s, _ := m.Get(key("big", "TXT")); len(s.Rdata) != 62 {
		t.Errorf("the RRset that is larger than a message has %d values", len(s.Rdata))
	}
	// And away with everything again.
	result, err = b.apply(plan.Changes{Delete: c.Create})
	if err != nil || b.read().Len() != 2 {
		t.Errorf("after deletion %d RRsets, %+v, %v", b.read().Len(), result, err)
	}
}

// TestManyRecords: as many records of one name as fit into an answer, on a server that takes them. Where others write as well, a change has
// to fit into one message together with what was there.
func TestManyRecords(t *testing.T) {
	t.Parallel()
	b := newBenchWith(t, named.Options{Extra: "max-records-per-type 4000;", Zones: []named.Zone{{Name: zone, Serial: 100}}})
	var many []string
	for i := range 3825 {
		many = append(many, fmt.Sprintf("10.0.%d.%d", i/256, i%256))
	}
	change := func(c plan.Changes) {
		t.Helper()
		result, err := b.apply(c)
		if err != nil || len(result.Refused) > 0 {
			t.Fatalf("%v, %v", result.Refused, err)
		}
		got, _ := b.read().Get(key("wide", "A"))
		if want := append(c.Create, c.UpdateNew...); len(want) == 0 && len(got.Rdata) > 0 || len(want) > 0 && !got.Equal(want[0]) {
			t.Errorf("there are %d records", len(got.Rdata))
		}
	}
	whole, some, others := set("wide", "A", 60, many...), set("wide", "A", 60, many[:300]...), set("wide", "A", 60, many[100:400]...)
	change(plan.Changes{Create: []rrset.RRset{whole}})
	change(plan.Changes{Delete: []rrset.RRset{whole}})
	b.target.Shared = true
	change(plan.Changes{Create: []rrset.RRset{some}})
	change(plan.Changes{UpdateOld: []rrset.RRset{some}, UpdateNew: []rrset.RRset{others}})
	result, err := b.apply(plan.Changes{UpdateOld: []rrset.RRset{others}, UpdateNew: []rrset.RRset{whole}})
	if why := result.Refused[whole.Key]; err != nil || why == nil || !strings.Contains(why.Error(), "declare fewer values") {
		t.Errorf("%v, %v", result.Refused, err)
	}
}

// TestOneGuilty: the server refuses some RRsets; all others are applied and the serial ends where it should.
func TestOneGuilty(t *testing.T) {
	t.Parallel()
	b := newBench(t, "old 300 A 192.0.2.1\nsub 300 NS ns.sub\nns.sub 300 A 192.0.2.3")
	var c plan.Changes
	for i := range 300 {
		c.Create = append(c.Create, set(fmt.Sprintf("h%03d", i), "A", 60, "192.0.2.1"))
	}
	var hundredOne []string
	for i := range 101 {
		hundredOne = append(hundredOne, fmt.Sprintf("192.0.2.%d", i))
	}
	bad := []rrset.RRset{
		set("under_score", "A", 60, "192.0.2.1"),        // check-names
		set("wide", "A", 60, hundredOne...),             // more than 100 records
		set("@", "NS", 300, "gone.example.test."),       // an in-zone name server without address
		{Key: key("broken", "A"), Rdata: []string{"x"}}, // no address at all
	}
	c.Create = slices.Insert(c.Create, 77, bad[0])
	c.Create = slices.Insert(c.Create, 200, bad[1], bad[3])
	c.UpdateOld = []rrset.RRset{set("@", "NS", 300, "ns1.example.test.")}
	c.UpdateNew = []rrset.RRset{bad[2]}
	c.Delete = []rrset.RRset{set("old", "A", 300, "192.0.2.1")}

	have := b.read().SOA
	result, err := b.provider.Apply(t.Context(), b.target, c, have, ahead(have, 100))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range bad {
		if result.Refused[s.Key] == nil {
			t.Errorf("%s is not refused", s.Name)
		}
	}
	m := b.read()
	if len(result.Refused) != len(bad) || m.Len() != 2+300+2 || m.SOA.Serial != 200 || result.SOA != m.SOA {
		t.Errorf("refused %v, %d RRsets, SOA %+v, result's %+v", result.Refused, m.Len(), m.SOA, result.SOA)
	}
	t.Logf("%d messages to isolate %d of %d RRsets", result.Sent, len(bad), c.Len())

	// All refused: the zone stays as it is, at any number of attempts.
	for _, s := range bad[:2] {
		for range 2 {
			result, err = b.apply(plan.Changes{Create: []rrset.RRset{s}})
			if err != nil || len(result.Refused) != 1 || result.SOA != m.SOA || b.read().SOA != m.SOA {
				t.Errorf("result %+v, error %v, SOA %+v", result, err, b.read().SOA)
			}
		}
	}
}

// TestRefusedAsSuch: when the server takes no update at all, no RRset is blamed and few messages are spent.
func TestRefusedAsSuch(t *testing.T) {
	t.Parallel()
	var c plan.Changes
	for i := range 100 {
		c.Create = append(c.Create, set(fmt.Sprintf("h%03d", i), "A", 60, "192.0.2.1"))
	}
	powerless := named.NewKey("powerless.")
	s := named.Start(t, named.Options{
		Zones: []named.Zone{{Name: zone}, {Name: "frozen.test."}},
		Keys:  []wire.Key{powerless},
	})
	secondary := named.Start(t, named.Options{Role: named.Secondary, Primary: s, Update: s.Update, Zones: []named.Zone{{Name: zone}}})
	unknown, wrong := named.NewKey("unknown."), named.NewKey(s.Update.Name)
	have := observe.New(observe.Options{}).Serial(t.Context(), observe.Peer{Addr: s.Addr}, zone, nil).SOA

	for name, tc := range map[string]struct {
		target rfc2136.Target
		reason string
	}{
		"unknown key":      {rfc2136.Target{Server: s.Addr, Zone: zone, Key: &unknown}, "BadKey"},
		"wrong secret":     {rfc2136.Target{Server: s.Addr, Zone: zone, Key: &wrong}, "BadSignature"},
		"powerless key":    {rfc2136.Target{Server: s.Addr, Zone: zone, Key: &powerless}, "Refused"},
		"no key":           {rfc2136.Target{Server: s.Addr, Zone: zone}, "Refused"},
		"a secondary":      {rfc2136.Target{Server: secondary.Addr, Zone: zone, Key: &s.Update}, "Refused"},
		"zone not hosted":  {rfc2136.Target{Server: s.Addr, Zone: "other.test.", Key: &s.Update}, "NotLoaded"},
		"nobody listening": {rfc2136.Target{Server: named.Reserve(t), Zone: zone, Key: &s.Update}, "ConnectionRefused"},
	} {
		t.Run(name, func(t *testing.T) {
			var o rfc2136.Options
			if name == "nobody listening" {
				o.Timeout = 2 * time.Second
			}
			p := rfc2136.New(o)
			defer p.Close()
			result, err := p.Apply(t.Context(), tc.target, c, have, ahead(have, 1))
			var e *wire.Error
			if name == "nobody listening" { // the reserved port accepts and never answers
				if !errors.Is(err, host.ErrUnknown) {
					t.Fatal(err)
				}
				return
			}
			if !errors.As(err, &e) || e.Reason() != tc.reason {
				t.Fatalf("error %v, want %s", err, tc.reason)
			}
			if len(result.Refused) > 0 || result.Sent > 2 || result.SOA != have {
				t.Errorf("result %+v", result)
			}
			for _, secret := range []string{unknown.Secret, s.Update.Secret, wrong.Secret} {
				if strings.Contains(err.Error(), secret) {
					t.Error("the error tells a secret")
				}
			}
		})
	}
	t.Run("frozen zone", func(t *testing.T) {
		if out, err := s.Rndc("freeze", "frozen.test"); err != nil {
			t.Fatal(out, err)
		}
		p := rfc2136.New(rfc2136.Options{})
		defer p.Close()
		have := observe.New(observe.Options{}).Serial(t.Context(), observe.Peer{Addr: s.Addr}, "frozen.test.", nil).SOA
		c := plan.Changes{Create: []rrset.RRset{rrset.New(rrset.Key{Name: "a.frozen.test.", Type: dns.TypeA}, 1, "192.0.2.1")}}
		result, err := p.Apply(t.Context(), rfc2136.Target{Server: s.Addr, Zone: "frozen.test.", Key: &s.Update}, c, have, ahead(have, 1))
		if e, ok := errors.AsType[*wire.Error](err); !ok || e.Reason() != "Refused" || len(result.Refused) > 0 {
			t.Errorf("result %+v, error %v", result, err)
		}
	})
}

// TestIgnored: BIND answers NOERROR and does nothing; reading back shows it.
func TestIgnored(t *testing.T) {
	t.Parallel()
	b := newBench(t, "a 300 A 192.0.2.1\nc 300 CNAME a")
	before := show(b.read())
	for _, s := range []rrset.RRset{
		set("a", "CNAME", 60, "c.example.test."),
		set("c", "A", 60, "192.0.2.2"),
		set("@", "CNAME", 60, "a.example.test."),
	} {
		result, err := b.apply(plan.Changes{Create: []rrset.RRset{s}})
		if err != nil || len(result.Refused) > 0 {
			t.Fatalf("result %+v, error %v", result, err)
		}
		if m := b.read(); m.SOA != result.SOA || !slices.Equal(show(m), before) {
			t.Errorf("SOA %+v, content %q", m.SOA, show(m))
		}
	}
	// The last apex NS cannot be deleted.
	if _, err := b.apply(plan.Changes{Delete: []rrset.RRset{set("@", "NS", 300, "ns1.example.test.")}}); err != nil {
		t.Fatal(err)
	}
	if m := b.read(); !slices.Equal(show(m), before) {
		t.Errorf("content %q", show(m))
	}
}

// TestCompareAndSwap: of many updates that were planned against the same SOA exactly one is applied.
func TestCompareAndSwap(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	for round := range 10 {
		have := b.read().SOA
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				c := plan.Changes{Create: []rrset.RRset{set(fmt.Sprintf("r%d-%d", round, i), "A", 60, "192.0.2.1")}}
				_, errs[i] = b.provider.Apply(t.Context(), b.target, c, have, ahead(have, 1))
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, host.ErrConflict) {
				t.Fatal(err)
			}
		}
		if m := b.read(); won != 1 || m.Len() != 2+round+1 {
			t.Fatalf("round %d: %d won, %d RRsets", round, won, m.Len())
		}
	}
}

// TestLostReply: the reply is lost on its way. Apply does not know, says so, and sends nothing again.
func TestLostReply(t *testing.T) {
	b := newBench(t, "")
	proxy := named.StartProxy(t, b.server.Addr)
	target := b.target
	target.Server = proxy.Addr
	apply := func(ctx context.Context, name string) (rfc2136.Result, error) {
		have := b.read().SOA
		c := plan.Changes{Create: []rrset.RRset{set(name, "A", 60, "192.0.2.1")}}
		return b.provider.Apply(ctx, target, c, have, ahead(have, 1))
	}
	if _, err := apply(t.Context(), "before"); err != nil {
		t.Fatal(err)
	}
	proxy.Filter(func(string, []byte) ([]byte, error) { return nil, named.ErrHangUp })
	before := b.read()
	result, err := apply(t.Context(), "cut")
	if !errors.Is(err, host.ErrUnknown) || result.SOA != before.SOA {
		t.Fatalf("result %+v, error %v", result, err)
	}
	if m := b.read(); m.SOA.Serial != before.SOA.Serial+1 || m.Len() != before.Len()+1 {
		t.Errorf("applied %d times", m.SOA.Serial-before.SOA.Serial)
	}

	proxy.Filter(func(string, []byte) ([]byte, error) { return nil, nil })
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // The server has to get it, and the reply is lost.
	defer cancel()
	before = b.read()
	if _, err := apply(ctx, "silent"); !errors.Is(err, host.ErrUnknown) {
		t.Fatalf("error %v", err)
	}
	if m := b.read(); m.SOA.Serial != before.SOA.Serial+1 {
		t.Errorf("applied %d times", m.SOA.Serial-before.SOA.Serial)
	}

	proxy.Filter(func(_ string, reply []byte) ([]byte, error) { return reply, nil })
	if _, err := apply(t.Context(), "after"); err != nil {
		t.Errorf("with the path whole again: %v", err)
	}
}

// TestForeignSpelling: a zone whose SOA was written in another case is compared and swapped all the same.
func TestForeignSpelling(t *testing.T) {
	t.Parallel()
	file := "$ORIGIN Example.TEST.\n$TTL 300\n@ SOA NS1 HostMaster 100 3600 600 86400 60\n@ NS Ns1\nns1 A 192.0.2.1\nWWW A 192.0.2.7\n"
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, File: file}}})
	b := &bench{t: t, server: s, observer: observe.New(observe.Options{}), provider: rfc2136.New(rfc2136.Options{})}
	b.target = rfc2136.Target{Server: s.Addr, Zone: zone, Key: &s.Update}
	defer b.provider.Close()
	result, err := b.apply(plan.Changes{
		UpdateOld: []rrset.RRset{set("www", "A", 300, "192.0.2.7"), set("@", "NS", 300, "ns1.example.test.")},
		UpdateNew: []rrset.RRset{set("www", "A", 300, "192.0.2.8"), set("@", "NS", 300, "ns.other.test.", "ns1.example.test.")},
	})
	if err != nil || len(result.Refused) > 0 {
		t.Fatal(result, err)
	}
	want := []string{"example.test. 300 NS ns.other.test. | ns1.example.test.", "www 300 A 192.0.2.8"}
	if diff := cmp.Diff(want, show(b.read())); diff != "" || b.read().SOA != result.SOA {
		t.Errorf("SOA %+v, content (-want +got):\n%s", b.read().SOA, diff)
	}
}

// TestTexts: what looks alike is told apart, and what needs escapes arrives as it was meant.
func TestTexts(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	whole, rest := strings.Repeat("x", 255), strings.Repeat("x", 45)
	texts := map[string][]string{
		"split":     {fmt.Sprintf("%q %q", whole, rest), fmt.Sprintf("%q %q", whole[:200], strings.Repeat("x", 100))},
		"backslash": {`"a\\b"`, `"ab"`},
		"quote":     {`"say \"hello\""`},
		"semicolon": {`"v=DKIM1; k=rsa"`},
		"empty":     {`""`, `"" ""`},
		"bytes":     {`"\000\009\200\255"`},
	}
	var c plan.Changes
	for name, values := range texts {
		c.Create = append(c.Create, set(name, "TXT", 60, values...))
	}
	if result, err := b.apply(c); err != nil || len(result.Refused) > 0 {
		t.Fatal(result, err)
	}
	m := b.read()
	for _, s := range c.Create {
		if got, _ := m.Get(s.Key); !got.Equal(s) {
			t.Errorf("%s: %q, want %q", s.Name, got.Rdata, s.Rdata)
		}
	}
	// And each can be taken away by its value.
	var d plan.Changes
	for _, s := range c.Create {
		d.UpdateOld = append(d.UpdateOld, s)
		d.UpdateNew = append(d.UpdateNew, rrset.New(s.Key, 60, `"new"`))
	}
	if result, err := b.apply(d); err != nil || len(result.Refused) > 0 {
		t.Fatal(result, err)
	}
	for _, s := range d.UpdateNew {
		if got, _ := b.read().Get(s.Key); !got.Equal(s) {
			t.Errorf("%s: %q, want %q", s.Name, got.Rdata, s.Rdata)
		}
	}
}

// TestAddressBeforeName: over several messages, in-zone name servers and mail exchangers get their addresses first.
func TestAddressBeforeName(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	c := plan.Changes{
		UpdateOld: []rrset.RRset{set("@", "NS", 300, "ns1.example.test.")},
		UpdateNew: []rrset.RRset{set("@", "NS", 300, "zz1.example.test.", "zz2.example.test.")},
		Create:    []rrset.RRset{set("@", "MX", 300, "10 zz1.example.test.")},
		Delete:    []rrset.RRset{set("ns1", "A", 300, "192.0.2.1")},
	}
	for i := range 2500 {
		c.Create = append(c.Create, set(fmt.Sprintf("h%04d", i), "TXT", 60, `"x"`))
	}
	c.Create = append(c.Create, set("zz1", "A", 300, "192.0.2.8"), set("zz2", "AAAA", 300, "2001:db8::8"))
	result, err := b.apply(c)
	if err != nil || len(result.Refused) > 0 || result.Sent < 2 {
		t.Fatalf("%d messages, refused %v, error %v", result.Sent, result.Refused, err)
	}
	m := b.read()
	if s, _ := m.Get(key("@", "NS")); !slices.Equal(s.Rdata, []string{"zz1.example.test.", "zz2.example.test."}) {
		t.Errorf("name servers %q", s.Rdata)
	}
	if _, ok := m.Get(key("ns1", "A")); ok || m.Len() != 2500+4 {
		t.Errorf("%d RRsets", m.Len())
	}
}

// TestRandomUpdates: after any series of updates the mirror kept by IXFR equals one made by AXFR, and what was asked for.
func TestRandomUpdates(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	rng := rand.New(rand.NewPCG(1, 2))
	types := map[string]func() string{
		"A":   func() string { return fmt.Sprintf("192.0.2.%d", rng.IntN(9)) },
		"TXT": func() string { return fmt.Sprintf("%q", fmt.Sprint(rng.IntN(9))) },
		"MX":  func() string { return fmt.Sprintf("%d mx%d.other.test.", rng.IntN(3), rng.IntN(3)) },
	}
	content := map[rrset.Key]rrset.RRset{}
	for range 150 {
		var c plan.Changes
		seen := map[rrset.Key]bool{}
		for range 1 + rng.IntN(10) {
			rrtype := []string{"A", "TXT", "MX"}[rng.IntN(3)]
			var values []string
			for range rng.IntN(4) {
				values = append(values, types[rrtype]())
			}
			s := set(fmt.Sprintf("n%d", rng.IntN(12)), rrtype, uint32(rng.IntN(3)*60), values...)
			old, exists := content[s.Key]
			switch {
			case seen[s.Key]:
				continue
			case exists && len(values) == 0:
				c.Delete = append(c.Delete, old)
				delete(content, s.Key)
			case exists && !old.Equal(s):
				c.UpdateOld, c.UpdateNew = append(c.UpdateOld, old), append(c.UpdateNew, s)
				content[s.Key] = s
			case !exists && len(values) > 0:
				c.Create = append(c.Create, s)
				content[s.Key] = s
			}
			seen[s.Key] = true
		}
		if !c.HasChanges() {
			continue
		}
		held := b.read()
		shown := show(held)
		if result, err := b.apply(c); err != nil || len(result.Refused) > 0 {
			t.Fatalf("result %+v, error %v", result, err)
		}
		m := b.read()
		if !m.SameContent(fresh(t, b)) {
			t.Fatalf("IXFR %q, AXFR %q", show(m), show(fresh(t, b)))
		}
		if m.Len() != len(content)+2 {
			t.Fatalf("%d RRsets, want %d", m.Len(), len(content)+2)
		}
		for _, s := range content {
			if got, _ := m.Get(s.Key); !got.Equal(s) {
				t.Fatalf("%+v, want %+v", got, s)
			}
		}
		if !slices.Equal(shown, show(held)) {
			t.Fatal("a mirror that was handed out has changed")
		}
	}
}

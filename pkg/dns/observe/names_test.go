package observe_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

func questions(rrtype uint16, names ...string) []observe.Question {
	var all []observe.Question
	for _, name := range names {
		k := rrset.Key{Name: name, Type: rrtype}
		all = append(all, observe.Question{Key: k, Want: rrset.RRset{Key: k}})
	}
	return all
}

// An answer remains good while the zone has the SOA that it had before and after it.
func TestAnswersCountForTheirSOA(t *testing.T) {
	s := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test.", Records: "a A 192.0.2.1\nb A 192.0.2.2\n", Extra: "allow-transfer { none; };"}}})
	o, ctx := observe.New(observe.Options{}), t.Context()
	a, b, missing := rrset.Key{Name: "a.example.test.", Type: dns.TypeA}, rrset.Key{Name: "b.example.test.", Type: dns.TypeA}, rrset.Key{Name: "c.example.test.", Type: dns.TypeA}
	ask := func(names ...string) observe.Observation {
		return o.ObserveNames(ctx, peerAt(s.Addr), zoneOf("example.test."), &s.Transfer, time.Now(), questions(dns.TypeA, names...)...)
	}
	first := ask(a.Name, missing.Name)
	if set, _ := first.Mirror.Get(a); len(set.Rdata) != 1 || !first.Mirror.IsPartial() {
		t.Fatalf("at first: %+v, error %v", set, first.Err)
	}
	if _, known := first.SeenAt(missing); !known {
		t.Error("that a name does not exist is not known")
	}
	if _, known := first.SeenAt(b); known {
		t.Error("what was not asked is known")
	}
	began := time.Now()
	second := ask(b.Name)
	if at, _ := second.SeenAt(a); at.Before(began) {
		t.Error("the zone has not changed, but an earlier answer does not count any more")
	}
	update(t, s, "b.example.test. 300 A 192.0.2.3")
	changed := time.Now()
	last := ask(b.Name)
	if at, known := last.SeenAt(a); !known || !at.Before(changed) {
		t.Errorf("an answer from before the change counts for %s, which is after it", at)
	}
	if at, _ := last.SeenAt(b); at.Before(changed) {
		t.Error("an answer from after the change does not count")
	}
}

func update(t *testing.T, s *bind.Server, record string) {
	t.Helper()
	rr, err := dns.NewRR(record)
	if err != nil {
		t.Fatal(err)
	}
	m := new(dns.Msg).SetUpdate("example.test.")
	m.Insert([]dns.RR{rr})
	conn, err := wire.Dial(t.Context(), s.Addr, &s.Update)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Exchange(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// What a server answers is accounted for, and what there is no memory for is unknown.
func TestAnswersAreBounded(t *testing.T) {
	var lines strings.Builder
	var names []string
	for i := range 40 {
		fmt.Fprintf(&lines, "t%d TXT %s\n", i, strings.Repeat(`"`+strings.Repeat("x", 250)+`" `, 4))
		names = append(names, fmt.Sprintf("t%d.example.test.", i))
	}
	s := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test.", Records: lines.String()}}})
	o := observe.New(observe.Options{Limits: observe.Limits{TotalBytes: 40 << 10}})
	for _, name := range names {
		o.ObserveNames(t.Context(), peerAt(s.Addr), zoneOf("example.test."), &s.Transfer, time.Now(), questions(dns.TypeTXT, name)...)
	}
	last := o.ObserveNames(t.Context(), peerAt(s.Addr), zoneOf("example.test."), &s.Transfer, time.Now())
	known := 0
	for _, name := range names {
		asked, _ := last.Mirror.Asked(rrset.Key{Name: name, Type: dns.TypeTXT})
		if asked.Err == nil {
			known++
		} else if !errors.Is(asked.Err, wire.ErrTooLarge) {
			t.Errorf("%s: %v", name, asked.Err)
		}
	}
	if known == 0 || known == len(names) || o.Charged() > 40<<10 {
		t.Errorf("%d of %d answers are known, %d bytes are charged", known, len(names), o.Charged())
	}
}

// A namespace that asks a server for very much does not keep other namespaces waiting, also where nobody has a key.
func TestQuestionsTakeTurns(t *testing.T) {
	s := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test."}}})
	o := observe.New(observe.Options{QuestionRate: 100})
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("n%d.example.test.", i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	busy := observe.Peer{Addr: s.Addr, Namespace: "busy", Provider: "coredns"}
	o.ObserveNames(ctx, busy, zoneOf("example.test."), nil, time.Now())
	wg.Go(func() {
		o.ObserveNames(ctx, busy, zoneOf("example.test."), nil, time.Now(), questions(dns.TypeA, many...)...)
	})
	for o.Waiting(s.Addr) < 500 {
		time.Sleep(time.Millisecond)
	}
	o.ObserveNames(t.Context(), borrowed(s.Addr), zoneOf("example.test."), nil, time.Now(), questions(dns.TypeA, many[:3]...)...)
	if left := o.Waiting(s.Addr); left < 500 {
		t.Errorf("three questions waited until %d of another namespace were left", left)
	}
}

// An answer that is no answer of the zone shows nothing of its content.
func TestAnswersWithoutAuthority(t *testing.T) {
	s := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test.", Records: "a A 192.0.2.1\nsub NS ns.sub\nns.sub A 192.0.2.5\n"}}})
	proxy := bind.StartProxy(t, s.Addr)
	proxy.Filter(func(_ string, reply []byte) ([]byte, error) {
		m := new(dns.Msg)
		if err := m.Unpack(reply); err != nil || m.Question[0].Name != "a.example.test." {
			return reply, err
		}
		m.Authoritative = false
		return m.Pack()
	})
	ask := func(addr netip.AddrPort, rrtype uint16, name string) (rrset.RRset, observe.Asked) {
		o := observe.New(observe.Options{}).ObserveNames(t.Context(), peerAt(addr), zoneOf("example.test."), nil, time.Now(), questions(rrtype, name)...)
		set, _ := o.Mirror.Get(rrset.Key{Name: name, Type: rrtype})
		asked, _ := o.Mirror.Asked(rrset.Key{Name: name, Type: rrtype})
		return set, asked
	}
	if set, asked := ask(proxy.Addr, dns.TypeA, "a.example.test."); asked.Err == nil || len(set.Rdata) > 0 {
		t.Errorf("without authority: %v, %v", set, asked.Err)
	}
	if set, asked := ask(s.Addr, dns.TypeNS, "sub.example.test."); asked.Err != nil || len(set.Rdata) != 1 {
		t.Errorf("a delegation: %v, %v", set, asked.Err)
	}
	if set, asked := ask(s.Addr, dns.TypeA, "ns.sub.example.test."); asked.Err != nil || len(set.Rdata) != 1 {
		t.Errorf("its glue: %v, %v", set, asked.Err)
	}
	if set, asked := ask(s.Addr, dns.TypeA, "www.sub.example.test."); asked.Err != nil || len(set.Rdata) != 0 {
		t.Errorf("what is below it: %v, %v", set, asked.Err)
	}
}

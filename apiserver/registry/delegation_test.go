package registry

import (
	"context"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// delegate puts a delegation into a zone on a server by RFC 2136, or takes it away.
func delegate(t *testing.T, s *bind.Server, zone, name, host string) {
	t.Helper()
	m := new(dns.Msg).SetUpdate(zone)
	ns := &dns.NS{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeNS, Class: dns.ClassINET, Ttl: 300}, Ns: host}
	if host == "" {
		m.RemoveRRset([]dns.RR{ns})
	} else {
		m.Insert([]dns.RR{ns})
	}
	sendUpdate(t, s, m)
}

// update adds a record to a zone on a server.
func update(t *testing.T, s *bind.Server, zone, record string) {
	t.Helper()
	rr, err := dns.NewRR(record)
	if err != nil {
		t.Fatal(err)
	}
	m := new(dns.Msg).SetUpdate(zone)
	m.Insert([]dns.RR{rr})
	sendUpdate(t, s, m)
}

func sendUpdate(t *testing.T, s *bind.Server, m *dns.Msg) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := wire.Dial(ctx, s.Addr, &s.Update)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Exchange(ctx, m); err != nil {
		t.Fatal(err)
	}
}

// A server that answers with a referral in place of what is declared is not in sync, although it holds the data.
func TestDelegationHidesARecord(t *testing.T) {
	w := newWorld(t)
	primary, _ := w.Lagging(bind.Zone{Name: "example.test.", Serial: 10, Records: "www.sub A 192.0.2.7\nother A 192.0.2.7"})
	w.Declare("www.sub", "other")
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	events.until("arecord.www.sub", allInStep)

	const hidden = "OutOfSync primary-0=Divergent secondary-0=InSync"
	delegate(t, primary, "example.test.", "sub.example.test.", "ns.example.org.")
	reply, err := wire.Query(t.Context(), primary.Addr, "www.sub.example.test.", dns.TypeA)
	if err != nil || reply.Msg.Authoritative || len(reply.Msg.Answer) > 0 {
		t.Fatalf("no referral: %v, %v", reply.Msg, err)
	}
	events.until("arecord.www.sub", hidden)
	for _, name := range []string{"arecord.www.sub", "dnszone.example.test"} {
		if s := w.get(name); states(s) != hidden || len(s.Servers[0].Observed) != 1 || s.Servers[0].Observed[0].Type != "NS" {
			t.Errorf("%s: %s, %+v", name, states(s), s.Servers[0])
		}
	}
	if got := states(w.get("arecord.other")); got != allInStep {
		t.Errorf("another record: %s", got)
	}
	delegate(t, primary, "example.test.", "sub.example.test.", "")
	events.until("arecord.www.sub", allInStep)
}

package rfc2136_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
	"github.com/lockstep-dns/lockstep/test/knot"
	"github.com/lockstep-dns/lockstep/test/named"
	"github.com/lockstep-dns/lockstep/test/powerdns"
)

// The servers that we know compare, and a probe changes nothing on them.
func TestProbe(t *testing.T) {
	t.Parallel()
	b := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}})
	k := knot.Start(t, map[string]string{zone: ""})
	p := powerdns.Start(t, map[string]string{zone: ""}, nil)
	for name, s := range map[string]struct {
		at               netip.AddrPort
		update, transfer wire.Key
	}{"BIND": {b.Addr, b.Update, b.Transfer}, "Knot": {k.Addr, k.Update, k.Transfer}, "PowerDNS": {p.Addr, p.Update, p.Transfer}} {
		for _, shared := range []bool{false, true} {
			read := func() *observe.Mirror {
				seen := observe.New(observe.Options{}).Observe(t.Context(), observe.Peer{Addr: s.at}, observe.Zone{Name: zone}, &s.transfer, time.Now())
				if seen.Mirror == nil {
					t.Fatalf("%s: %s %v", name, seen.Message(), seen.Err)
				}
				return seen.Mirror
			}
			before := read()
			compares, err := rfc2136.Probe(t.Context(), rfc2136.Target{Server: s.at, Zone: zone, Key: &s.update, Shared: shared}, before.SOA)
			if err != nil || !compares {
				t.Errorf("%s, shared %t: compares %t, error %v", name, shared, compares, err)
			}
			if after := read(); after.SOA != before.SOA || !after.SameContent(before) {
				t.Errorf("%s, shared %t: SOA %+v before and %+v after", name, shared, before.SOA, after.SOA)
			}
		}
	}
}

// A server that refuses updates is no evidence.
func TestProbeRefused(t *testing.T) {
	t.Parallel()
	b := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}})
	secondary := named.Start(t, named.Options{Role: named.Secondary, Primary: b, Update: b.Update, Zones: []named.Zone{{Name: zone}}})
	k := knot.Start(t, map[string]string{zone: ""}, "acl: [transfer]")
	p := powerdns.Start(t, map[string]string{zone: ""}, map[string]string{"TSIG-ALLOW-DNSUPDATE": "nobody"})
	frozen := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone}}})
	if out, err := frozen.Rndc("freeze", zone); err != nil {
		t.Fatal(out, err)
	}
	for name, target := range map[string]rfc2136.Target{
		"secondary": {Server: secondary.Addr, Key: &b.Update}, "frozen": {Server: frozen.Addr, Key: &frozen.Update},
		"Knot": {Server: k.Addr, Key: &k.Update}, "PowerDNS": {Server: p.Addr, Key: &p.Update},
	} {
		target.Zone = zone
		_, err := rfc2136.Probe(t.Context(), target, rrset.SOA{MName: "ns1." + zone, RName: "hostmaster." + zone, Serial: 1})
		if e, ok := errors.AsType[*wire.Error](err); !ok || e.Rcode != dns.RcodeRefused && !e.RefusesKey() { // Knot knows no key that it lets do nothing.
			t.Errorf("%s: %v", name, err)
		}
	}
}

// careless takes an update whatever its prerequisites are, of the kinds that it does not know.
type careless struct {
	key wire.Key
	// knows are the classes of prerequisites that it refuses, with the answer.
	knows map[uint16]int
}

func (c careless) start(t *testing.T) netip.AddrPort {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{
		Listener: listener, TsigSecret: map[string]string{c.key.Name: c.key.Secret}, Handler: c,
		MsgAcceptFunc: func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept },
	}
	go func() { _ = s.ActivateAndServe() }()
	t.Cleanup(func() { _ = listener.Close() })
	return netip.MustParseAddrPort(listener.Addr().String())
}

func (c careless) ServeDNS(w dns.ResponseWriter, m *dns.Msg) {
	reply := new(dns.Msg).SetReply(m)
	reply.Rcode = c.knows[m.Answer[0].Header().Class]
	reply.SetTsig(c.key.Name, c.key.Algorithm, 300, int64(m.IsTsig().TimeSigned))
	_ = w.WriteMsg(reply)
}

// A server that takes an update whose prerequisite does not hold is found out.
func TestProbeOfACarelessServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		knows                    map[uint16]int
		byExclusive, bySharedUse bool
	}{
		"all":     {map[uint16]int{dns.ClassINET: dns.RcodeNXRrset, dns.ClassNONE: dns.RcodeYXRrset}, true, true},
		"none":    {nil, false, false},
		"a value": {map[uint16]int{dns.ClassINET: dns.RcodeNXRrset}, true, false},
	} {
		key := named.NewKey("update.")
		at := careless{key, c.knows}.start(t)
		for shared, want := range map[bool]bool{false: c.byExclusive, true: c.bySharedUse} {
			target := rfc2136.Target{Server: at, Zone: zone, Key: &key, Shared: shared}
			if got, err := rfc2136.Probe(t.Context(), target, rrset.SOA{MName: "ns1." + zone, RName: "hostmaster." + zone}); err != nil || got != want {
				t.Errorf("one that knows %s, shared %t: compares %t, error %v", name, shared, got, err)
			}
		}
	}
}

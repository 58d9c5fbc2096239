package reconcile

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/hosttest"
	"github.com/lockstep-dns/lockstep/test/knot"
	bind "github.com/lockstep-dns/lockstep/test/named"
	"github.com/lockstep-dns/lockstep/test/nsd"
	"github.com/lockstep-dns/lockstep/test/powerdns"
)

// The conformance suite: what a zone on a server of somebody else's has to go through, done by complete passes. Its outcome is the
// table in the reference of providers.

// conformer is a server under test, with writers and readBy of its provider.
type conformer struct {
	name, writers string
	readBy        v1beta1.ReadMethod
	// start runs a primary, and the server under test if that is another.
	start func(t testing.TB, records string) (primary, secondary *bind.Server)
}

func startBIND(t testing.TB, records string) (primary, secondary *bind.Server) {
	return bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: rigZone, Records: records}}}), nil
}

func startKnot(t testing.TB, records string) (primary, secondary *bind.Server) {
	s := knot.Start(t, map[string]string{rigZone: records})
	return &bind.Server{Addr: s.Addr, Update: s.Update, Transfer: s.Transfer}, nil
}

func startPowerDNS(t testing.TB, records string) (primary, secondary *bind.Server) {
	s := powerdns.Start(t, map[string]string{rigZone: records}, nil)
	return &bind.Server{Addr: s.Addr, Update: s.Update, Transfer: s.Transfer}, nil
}

func startNSD(t testing.TB, records string) (primary, secondary *bind.Server) {
	at := bind.Reserve(t)
	primary = bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: rigZone, Records: records}}, AlsoNotify: []netip.AddrPort{at}})
	nsd.Start(t, nsd.Options{Addr: at, Zone: rigZone, Primary: primary.Addr, Key: primary.Transfer})
	return primary, &bind.Server{Addr: at, Transfer: primary.Transfer}
}

var conformers = []conformer{
	{"BIND", "Exclusive", "Transfer", startBIND},
	{"BIND", "Shared", "Transfer", startBIND},
	{"BIND", "Exclusive", "Query", startBIND},
	{"BIND", "Shared", "Query", startBIND},
	{"Knot", "Exclusive", "Transfer", startKnot},
	{"Knot", "Shared", "Transfer", startKnot},
	{"Knot", "Shared", "Query", startKnot},
	{"PowerDNS", "Shared", "Transfer", startPowerDNS},
	{"PowerDNS", "Shared", "Query", startPowerDNS},
	{"NSD", "", "", startNSD},
}

// column returns its column of the table.
func (on conformer) column() string {
	if on.writers == "" {
		return on.name + ", secondary"
	}
	return fmt.Sprintf("%s, %s, %s", on.name, on.writers, on.readBy)
}

// cannot returns why a case is none for the server.
func (on conformer) cannot(c conformance) string {
	switch {
	case on.writers == "" && c.writes:
		return "nothing is written to a secondary"
	case on.readBy == v1beta1.ReadByQuery && c.name == hosttest.CaseForeign:
		return "only what objects declare is asked for"
	}
	return ""
}

// conformance is one case. It reports whether the server does what it says.
type conformance struct {
	name string
	// writes is true if it is about the server that is written to, not about what one serves.
	writes bool
	run    func(c *conformanceRun) bool
}

// conformanceRun is a zone on a server that is written to, on which "legacy" and "ns1" have addresses that nobody declares. What is
// looked at is what the server under test has: the same, or a secondary of it.
type conformanceRun struct {
	*rig
	server, tested *bind.Server
	key            *wire.Key
	generation     int64
}

func newConformanceRun(t testing.TB, on conformer) *conformanceRun {
	r := newBareRig(t)
	primary, secondary := on.start(t, "legacy 300 A 192.0.2.77\n")
	c := &conformanceRun{rig: r, server: primary, tested: primary}
	r.primary = []*bind.Server{primary}
	var secondaries []*bind.Server
	if secondary != nil {
		c.tested, secondaries = secondary, []*bind.Server{secondary}
	}
	p := r.provide("corp", r.primary, secondaries...)
	p.Spec.RFC2136.Writers, p.Spec.RFC2136.ReadBy = v1beta1.WriterMode(on.writers), on.readBy
	r.scope.servers = serving.AddProviders(nil, r.scope.providers)
	if c.key = &c.server.Transfer; on.readBy == v1beta1.ReadByQuery {
		c.key = &c.server.Update // It may not transfer.
		r.setKeys("corp", c.key, c.key)
	}
	return c
}

// declare replaces what is declared by lines "NAME TTL TYPE VALUE; VALUE …".
func (c *conformanceRun) declare(lines ...string) {
	c.generation++
	e := &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{
		Namespace: "dns", Name: "all", UID: "all", Generation: c.generation, Finalizers: []string{v1beta1.Finalizer},
	}}
	for _, line := range lines {
		key, ttl, values := readLine(line)
		e.Spec.Endpoints = append(e.Spec.Endpoints, &v1alpha1.Endpoint{
			DNSName: key.Name, RecordTTL: int64(ttl), RecordType: dns.TypeToString[key.Type], Targets: values,
		})
	}
	c.zones.Set(e)
}

func readLine(line string) (key rrset.Key, ttl uint32, values []string) {
	name, rest, _ := strings.Cut(line, " ")
	var rrtype string
	if _, err := fmt.Sscan(rest, &ttl, &rrtype); err != nil {
		panic(line)
	}
	_, text, _ := strings.Cut(rest, rrtype+" ")
	return rrset.Key{Name: name + "." + rigZone, Type: dns.StringToType[rrtype]}, ttl, strings.Split(text, "; ")
}

// publishes reports whether a pass brings exactly the lines to the server, beside what nobody declares.
func (c *conformanceRun) publishes(lines ...string) bool {
	c.declare(lines...)
	return c.syncs() && c.has(lines...)
}

// publishesBeside is publishes beside a line of somebody else's.
func (c *conformanceRun) publishesBeside(theirs string, lines ...string) bool {
	c.declare(lines...)
	return c.syncs() && c.has(append(lines, theirs)...)
}

func (c *conformanceRun) syncs() bool {
	p := c.pass()
	if !p.event.Programmed.Holds() || len(p.event.Unprogrammed) > 0 {
		c.t.Logf("%+v, unprogrammed %v", p.event.Programmed, p.event.Unprogrammed)
		return false
	}
	return true
}

// has reports whether the server has exactly the lines, beside its apex and "legacy", by another look than the pass's.
func (c *conformanceRun) has(lines ...string) bool {
	want, got := map[rrset.Key]string{}, map[rrset.Key]string{}
	for _, line := range append(lines, "legacy 300 A 192.0.2.77") {
		key, ttl, values := readLine(line)
		var rdata []string
		for _, value := range values {
			rr, err := dns.NewRR(fmt.Sprintf("%s %d IN %s %s", key.Name, ttl, dns.TypeToString[key.Type], value))
			if err != nil {
				c.t.Fatal(line, err)
			}
			_, _, data := rrset.FromRR(rr)
			rdata = append(rdata, data)
		}
		want[key] = rrset.New(key, ttl, rdata...).String()
	}
	for set := range c.lookAtTested().All() {
		if set.Name != rigZone && set.Name != "ns1."+rigZone {
			got[set.Key] = set.String()
		}
	}
	diff := cmp.Diff(want, got)
	if diff != "" {
		c.t.Logf("(-want +got):\n%s", diff)
	}
	return diff == ""
}

// lookAtTested returns what the server under test has, once that is of its primary's serial.
func (c *conformanceRun) lookAtTested() *observe.Mirror {
	c.observer.Forget(observe.Peer{Addr: c.server.Addr}, observe.Zone{Name: rigZone})
	has := c.look(c.server)
	for began := time.Now(); c.tested != c.server; {
		seen := c.observer.Observe(c.t.Context(), observe.Peer{Addr: c.tested.Addr}, observe.Zone{Name: rigZone}, &c.tested.Transfer, time.Now())
		if seen.Mirror != nil && seen.Mirror.SOA.Serial == has.SOA.Serial {
			return seen.Mirror
		}
		if time.Since(began) > time.Minute {
			c.t.Fatalf("the secondary does not follow to serial %d: %s %v", has.SOA.Serial, seen.Message(), seen.Err)
		}
	}
	return has
}

var allTypes = []string{
	"www 300 A 192.0.2.10; 192.0.2.11", "www 60 AAAA 2001:db8::1", "alias 300 CNAME www.example.test.", "mail 300 MX 10 www.example.test.",
	"_sip._tcp 300 SRV 10 20 5060 www.example.test.", `text 300 TXT "a \"quoted\" string"`, "ptr 300 PTR www.example.test.",
}

var conformanceCases = []conformance{
	{hosttest.CaseTypes, false, func(c *conformanceRun) bool {
		changed := []string{
			"www 300 A 192.0.2.10; 192.0.2.12", "www 60 AAAA 2001:db8::2", "alias 300 CNAME ns1.example.test.", "mail 300 MX 20 www.example.test.",
			"_sip._tcp 300 SRV 10 20 5061 www.example.test.", `text 300 TXT "another"`, "ptr 300 PTR ns1.example.test.",
		}
		return c.publishes(allTypes...) && c.publishes(changed...) && c.publishes()
	}},
	{hosttest.CaseCAA, false, func(c *conformanceRun) bool {
		return c.publishes(`caa 300 CAA 0 issue "ca.example.net"`) && c.publishes(`caa 300 CAA 0 issue "ca.example.org"`) && c.publishes()
	}},
	{hosttest.CaseTTL, false, func(c *conformanceRun) bool {
		return c.publishes("www 300 A 192.0.2.10; 192.0.2.11") && c.publishes("www 60 A 192.0.2.10; 192.0.2.11")
	}},
	{hosttest.CaseAlias, false, func(c *conformanceRun) bool {
		return c.publishes("a 300 A 192.0.2.1", "c 300 CNAME ns1.example.test.") &&
			c.publishes("c 300 A 192.0.2.1", "a 300 CNAME ns1.example.test.")
	}},
	{hosttest.CaseWildcards, false, func(c *conformanceRun) bool {
		if !c.publishes("*.wild 300 A 192.0.2.5") {
			return false
		}
		return slices.Equal(served(c.t, c.tested, "any.wild"), []string{"192.0.2.5"})
	}},
	{hosttest.CaseDelegations, false, func(c *conformanceRun) bool {
		return c.publishes("sub 300 NS ns.sub.example.test.", "ns.sub 300 A 192.0.2.6") && c.publishes()
	}},
	{hosttest.CaseAtomic, true, func(c *conformanceRun) bool {
		m := new(dns.Msg)
		m.SetUpdate(rigZone)
		for _, line := range []string{"atomic." + rigZone + " 60 A 192.0.2.1", "www.elsewhere.invalid. 60 A 192.0.2.1"} {
			rr, err := dns.NewRR(line)
			if err != nil {
				c.t.Fatal(err)
			}
			m.Insert([]dns.RR{rr})
		}
		conn, err := wire.Dial(c.t.Context(), c.server.Addr, &c.server.Update)
		if err != nil {
			c.t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		reply, err := conn.Exchange(c.t.Context(), m)
		return err == nil && reply.Rcode == dns.RcodeNotZone && c.has()
	}},
	{hosttest.CaseSerial, false, func(c *conformanceRun) bool {
		before := c.lookAtTested().SOA.Serial
		return c.publishes("www 300 A 192.0.2.10") && rrset.SerialLess(before, c.lookAtTested().SOA.Serial)
	}},
	{hosttest.CaseDrift, true, func(c *conformanceRun) bool {
		if !c.publishes("www 300 A 192.0.2.10") {
			return false
		}
		c.byHand(0, "www", "192.0.2.99")
		c.byHand(0, "theirs", "192.0.2.98")
		p := c.pass()
		return p.event.Drift == 1 && c.has("www 300 A 192.0.2.10", "theirs 60 A 192.0.2.98")
	}},
	{hosttest.CaseForeign, true, func(c *conformanceRun) bool {
		p := c.pass()
		return slices.Contains(p.event.ForeignSample, rrset.Key{Name: "legacy." + rigZone, Type: dns.TypeA})
	}},
	{hosttest.CaseSynthesized, true, func(c *conformanceRun) bool {
		c.insert(0, "*."+rigZone+" 300 A 192.0.2.50")
		wild := "* 300 A 192.0.2.50"
		if !c.publishesBeside(wild, "www 300 A 192.0.2.50; 192.0.2.51") || !c.publishesBeside(wild, "other 60 A 192.0.2.51") {
			return false
		}
		return c.publishesBeside(wild) && slices.Equal(served(c.t, c.server, "www"), []string{"192.0.2.50"})
	}},
	{hosttest.CaseRace, true, func(c *conformanceRun) bool {
		c.updates = meddlerBefore{c.updates, sync.OnceFunc(func() { c.byHand(0, "race", "192.0.2.98") })}
		c.declare("www 300 A 192.0.2.10")
		return c.syncs() && c.has("www 300 A 192.0.2.10", "race 60 A 192.0.2.98")
	}},
	{hosttest.CaseRaceAtName, true, func(c *conformanceRun) bool {
		if !c.publishes("www 300 A 192.0.2.10", "more 300 A 192.0.2.20") {
			return false
		}
		c.updates = meddlerBefore{c.updates, sync.OnceFunc(func() { c.byHand(0, "www", "192.0.2.98") })}
		return c.publishes("www 300 A 192.0.2.11", "more 300 A 192.0.2.21")
	}},
	{hosttest.CaseLostReply, true, func(c *conformanceRun) bool {
		proxy := bind.StartProxy(c.t, c.server.Addr)
		direct := c.scope.servers[0].Addr
		c.scope.servers[0].Addr = proxy.Addr
		if !c.syncs() {
			return false
		}
		var lost sync.Once
		proxy.Filter(func(network string, reply []byte) (passed []byte, err error) {
			passed = reply
			if m := new(dns.Msg); network == "tcp" && m.Unpack(reply) == nil && m.Opcode == dns.OpcodeUpdate {
				lost.Do(func() { passed, err = nil, bind.ErrHangUp })
			}
			return passed, err
		})
		defer func() { c.scope.servers[0].Addr = direct }()
		return c.publishes("www 300 A 192.0.2.10")
	}},
	{hosttest.CaseRefused, true, func(c *conformanceRun) bool {
		c.declare("www 300 A 192.0.2.10", "bad 300 MX 10 nowhere.example.test.", "more 300 A 192.0.2.20")
		c.pass()
		return slices.Equal(served(c.t, c.server, "www"), []string{"192.0.2.10"}) && slices.Equal(served(c.t, c.server, "more"), []string{"192.0.2.20"})
	}},
	{hosttest.CaseWrongKey, true, func(c *conformanceRun) bool {
		wrong := bind.NewKey(c.server.Update.Name)
		c.setKeys("corp", &wrong, c.key)
		c.declare("www 300 A 192.0.2.10")
		message := c.pass().event.Programmed.Message
		words := strings.Contains(message, "BADSIG") || strings.Contains(message, "answered REFUSED (the reply to a signed request is not signed)")
		return words && strings.Contains(message, "Secret dns/corp-update") && c.has()
	}},
	{hosttest.CaseMany, false, func(c *conformanceRun) bool {
		var lines []string
		for n := range 2000 {
			lines = append(lines, fmt.Sprintf("n%d 300 A 192.0.2.%d", n, 1+n%200))
		}
		began := time.Now()
		ok := c.publishes(lines...)
		c.t.Logf("in %s", time.Since(began))
		lines[17] = "n17 300 A 198.51.100.1"
		return ok && c.publishes(lines...)
	}},
}

// TestConformance demands that the table in the reference says what the servers do.
func TestConformance(t *testing.T) {
	found := map[string]hosttest.Column{}
	for _, on := range conformers {
		column := hosttest.Column{}
		for _, test := range conformanceCases {
			t.Run(fmt.Sprintf("%s/%s", on.column(), test.name), func(t *testing.T) {
				reason := on.cannot(test)
				if reason != "" && on.writers == "" {
					column[test.name] = reason
					return
				}
				column[test.name] = hosttest.Cell(test.run(newConformanceRun(t, on)), reason)
			})
		}
		found[on.column()] = column
	}
	hosttest.CheckTable(t, "../../../docs/reference/providers.md", found)
}

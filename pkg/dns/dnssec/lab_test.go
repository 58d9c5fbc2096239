package dnssec

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/test/named"
)

// lab is random zones and the servers that serve them.
type lab struct {
	zones []*liveZone
	// all serves all zones, tops only those at the top: it answers questions about the others with referrals.
	all, tops netip.AddrPort
}

func newLab(t *testing.T, r *rand.Rand) *lab {
	l := new(lab)
	all, tops := []named.Zone{{Name: elsewhere, Records: "* A 192.0.2.1"}}, []named.Zone(nil)
	for i := range 14 {
		z := newLiveZone(t, r, fmt.Sprintf("z%d.test.", i), true)
		l.zones = append(l.zones, z)
		for _, one := range append([]*liveZone{z}, z.children...) {
			all = append(all, named.Zone{Name: one.name, File: one.file(), Extra: "dnssec-update-mode no-resign;"})
		}
		tops = append(tops, all[len(all)-1-len(z.children)])
		anchor := fmt.Sprintf("trust-anchors { %s static-key %d %d %d %q; };\n", z.name, z.anchor.Flags, z.anchor.Protocol, z.anchor.Algorithm, z.anchor.PublicKey)
		if err := os.WriteFile(filepath.Join(z.dir, "anchors"), []byte(anchor), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.all, l.tops = named.Start(t, named.Options{Zones: all}).Addr, named.Start(t, named.Options{Zones: tops}).Addr
	return l
}

// ask panics if there is no answer: workers of a test cannot end it.
func ask(server netip.AddrPort, q dns.Question) *dns.Msg {
	m := &dns.Msg{MsgHdr: dns.MsgHdr{Id: dns.Id()}, Question: []dns.Question{{Name: q.Name, Qtype: q.Qtype, Qclass: dns.ClassINET}}}
	m.SetEdns0(4096, true)
	c := dns.Client{Net: "tcp", Timeout: time.Minute}
	reply, _, err := c.Exchange(m, server.String())
	for try := 1; err != nil && try < 3; try++ { // On a busy machine an answer comes late.
		reply, _, err = c.Exchange(m, server.String())
	}
	if err != nil {
		panic(err)
	}
	return reply
}

// view is what a resolver sees of the lab: its server answers one question with another message.
type view struct {
	*lab
	addr   netip.AddrPort
	mu     sync.Mutex
	forged *dns.Msg
}

func newView(t *testing.T, l *lab) *view {
	v := &view{lab: l, addr: named.Reserve(t)}
	named.Release(t, v.addr)
	for _, network := range []string{"udp", "tcp"} {
		listening := make(chan struct{})
		s := &dns.Server{Addr: v.addr.String(), Net: network, Handler: v, NotifyStartedFunc: func() { close(listening) }}
		ended := make(chan error, 1)
		go func() { ended <- s.ListenAndServe() }()
		select {
		case <-listening:
			t.Cleanup(func() { _ = s.Shutdown() })
		case err := <-ended:
			t.Fatal(err)
		}
	}
	return v
}

func (v *view) ServeDNS(w dns.ResponseWriter, query *dns.Msg) {
	reply := v.ask(query.Question[0])
	reply.Id, reply.Question = query.Id, query.Question
	if w.LocalAddr().Network() == "udp" {
		reply.Truncate(int(query.IsEdns0().UDPSize()))
	}
	_ = w.WriteMsg(reply)
}

func (v *view) ask(q dns.Question) *dns.Msg {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.forged != nil && strings.EqualFold(v.forged.Question[0].Name, q.Name) && v.forged.Question[0].Qtype == q.Qtype {
		return v.forged.Copy()
	}
	return ask(v.all, q)
}

func (v *view) forge(m *dns.Msg) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forged = m
}

// resolver judges answers as delv does: with the keys of one zone, of the zones below it, and along chains of CNAME records.
type resolver struct {
	*view
	trusted *liveZone
	// asks asks for DS records before it rejects an answer.
	asks bool
	// lenient leaves out what has no valid signature in an authority section, instead of rejecting the answer.
	lenient bool
	clock   Clock
}

func (v *view) resolve(q dns.Question, trusted *liveZone, asks, lenient bool) Verdict {
	r := &resolver{view: v, trusted: trusted, asks: asks, lenient: lenient, clock: Clock{Now: time.Now()}}
	return r.resolve(q)
}

func (r *resolver) judge(keys *Keys, m *dns.Msg, cuts ...string) Verdict {
	if r.lenient {
		m = m.Copy()
		for _, s := range groupRecords(m.Ns, keys.zone) {
			if f := newVerifier(keys.zone, keys.keys, r.clock, &work{}).verify(s); f != nil && s.Type != dns.TypeNS {
				m.Ns = slices.DeleteFunc(m.Ns, func(rr dns.RR) bool { return canonical(rr.Header().Name) == s.Name && covered(rr) == s.Type })
			}
		}
	}
	return keys.Judge(m, r.clock, cuts...)
}

func (r *resolver) keysOf(zone string, anchors []dns.RR) *Keys {
	return Trust(zone, r.ask(dns.Question{Name: zone, Qtype: dns.TypeDNSKEY}).Answer, anchors, r.clock)
}

func (r *resolver) resolve(q dns.Question) Verdict {
	if !rrset.IsSubdomain(q.Name, r.trusted.name) {
		return Verdict{Security: Insecure, Detail: "another zone"}
	}
	m := r.ask(q)
	if m.Rcode == dns.RcodeServerFailure {
		return Verdict{Security: Unknown, Detail: "a chain without end"}
	}
	keys := r.keysOf(r.trusted.name, []dns.RR{r.trusted.anchor})
	child := r.trusted.childOf(q)
	if child != "" {
		referral := ask(r.tops, q)
		if v := r.judge(keys, referral); v.Security != Secure {
			return r.descend(keys, child, v)
		}
		below := r.keysOf(child, referral.Ns)
		if below.Verdict().Security == Insecure {
			return r.descend(keys, child, below.Verdict())
		}
		keys = below
	}
	target, link := firstLink(m)
	verdict := r.judge(keys, m, r.trusted.cuts(child)...)
	if verdict.Security == Bogus && target != "" {
		verdict = r.judge(keys, link, r.trusted.cuts(child)...)
	}
	if verdict.Security == Bogus {
		verdict = r.descend(keys, q.Name, verdict)
	}
	if verdict.Security == Bogus || verdict.Security == Unknown || target == "" {
		return verdict
	}
	if next := r.resolve(dns.Question{Name: target, Qtype: q.Qtype}); next.Security != Secure {
		return next
	}
	return verdict
}

// descend asks for DS records at all names from a zone down to another name. An answer that is not proven can be from an unsigned zone
// that opt-out hides (RFC 5155 section 6). One from an unsigned zone is Bogus if nothing proves that no name above is signed.
func (r *resolver) descend(keys *Keys, name string, verdict Verdict) Verdict {
	if verdict.Security == Bogus && !r.asks {
		return verdict
	}
	for n := dns.CountLabel(keys.zone) + 1; n <= dns.CountLabel(name); n++ {
		q := dns.Question{Name: ancestor(name, n), Qtype: dns.TypeDS}
		if slices.Contains(r.trusted.cuts(""), q.Name) {
			break
		}
		m := r.ask(q)
		if target, link := firstLink(m); target != "" {
			m = link
		}
		switch v := r.judge(keys, m, r.trusted.cuts("")...); {
		case m.Rcode == dns.RcodeServerFailure:
			return Verdict{Security: Bogus, Detail: v.Detail}
		case v.Security == Bogus, v.Security == Insecure && m.Rcode == dns.RcodeSuccess && len(m.Answer) == 0:
			return v
		}
	}
	return verdict
}

// cuts are the zones below, of which one that is judged itself has none.
func (z *liveZone) cuts(child string) (names []string) {
	for _, c := range z.children {
		if child == "" {
			names = append(names, c.name)
		}
	}
	return names
}

// childOf is the zone below that answers a question, or empty.
func (z *liveZone) childOf(q dns.Question) string {
	for _, c := range z.children {
		if rrset.IsSubdomain(q.Name, c.name) && (q.Qtype != dns.TypeDS || q.Name != c.name) {
			return c.name
		}
	}
	return ""
}

// firstLink is where a CNAME record in an answer leads, and the answer without the rest of the chain. delv asks for the target again.
func firstLink(m *dns.Msg) (target string, link *dns.Msg) {
	q := m.Question[0]
	if q.Qtype == dns.TypeCNAME {
		return "", nil
	}
	link = m.Copy()
	link.Question[0].Qtype, link.Answer = dns.TypeCNAME, nil
	for _, rr := range m.Answer {
		cname, ok := rr.(*dns.CNAME)
		if ok && strings.EqualFold(cname.Hdr.Name, q.Name) {
			target = canonical(cname.Target)
		}
		if covered(rr) == dns.TypeCNAME && strings.EqualFold(rr.Header().Name, q.Name) || covered(rr) == dns.TypeDNAME && isBelow(canonical(q.Name), canonical(rr.Header().Name)) {
			link.Answer = append(link.Answer, rr)
		}
	}
	return target, link
}

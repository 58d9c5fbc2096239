package dnssec

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// FuzzAnswers: whatever a server sends as answer, keys and DS records costs a bounded amount of work, and is not Secure without a signature.
func FuzzAnswers(f *testing.F) {
	z := newTestZone(f, "example.", plainExample+hashedExample[strings.Index(hashedExample, "0p9m"):]+"www A 192.0.2.1\n")
	keys, trap := keyTrap(f, z, 9)
	for _, m := range []*dns.Msg{
		z.reply("x.w MX", 0, "x.w MX", "@ NS"), z.reply("ml A", nx, "", "@ SOA, b NSEC, @ NSEC"), z.reply("a.z.w MX", 0, "*.w MX=a.z.w", "x.y.w NSEC"),
		z.reply("mc.a MX", 0, "", "- a NS, a DS"), z.reply("a.c.x.w A", nx, "", short.Replace("@ SOA, H(@), H(x.w), H(a)")), trap, trapped(z, keys, trap),
	} {
		m.Compress = true
		raw, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := new(dns.Msg)
		if m.Unpack(raw) != nil {
			return
		}
		w := new(work)
		v := z.keys.judge(m, at, w, []string{"b.example."})
		if (v.Security == Secure || v.Security == Expiring) && (w.verifications == 0 || v.Expires.IsZero()) {
			t.Errorf("%+v of\n%s", v, m)
		}
		w.check(t)
		w = new(work)
		k := trust("example.", m.Answer, append(m.Ns, z.key.ToDS(dns.SHA256)), at, w)
		w.check(t)
		w = new(work)
		k.judge(m, at, w, nil)
		w.check(t)
	})
}

func (w *work) check(t *testing.T) {
	if w.verifications > maxVerifications || w.hashes > maxHashes {
		t.Errorf("%+v", w)
	}
}

const provenZone = `
@     SOA ns1 hm 1 3600 300 3600000 3600
@     NS  ns1
a     A   192.0.2.1
a     TXT a
b.c   A   192.0.2.2
*.w   A   192.0.2.3
x.w   TXT x
y.x.w A   192.0.2.4
alias CNAME a
wild  CNAME q.w
lost  CNAME gone
d     DNAME w
sub   NS  ns.sub
sec   NS  ns.sec
sec   DS  1 13 2 00
`

// falseRecords are unsigned.
const falseRecords = `
sub    A     192.0.2.66
sub    CNAME a
sub    DS    1 13 2 66
h.sub  A     192.0.2.66
h.sub  CNAME a
h.sub  NS    ns
h.sub  DS    1 13 2 66
sec    A     192.0.2.66
a      A     192.0.2.66
q.w    A     192.0.2.66
gone   A     192.0.2.66
x.d    CNAME a
`

// FuzzProofs: what a server proves by any records of a zone is true.
func FuzzProofs(f *testing.F) {
	names := []string{"@", "a", "x.a", "c", "b.c", "w", "*.w", "q.w", "x.w", "q.x.w", "q.q.w", "alias", "wild", "lost", "gone", "d", "x.d", "q.d", "sub", "h.sub", "sec", "h.sec", "zz"}
	rrtypes := []uint16{dns.TypeA, dns.TypeTXT, dns.TypeDS, dns.TypeNS, dns.TypeSOA, dns.TypeCNAME, dns.TypeDNAME}
	zones := []*testZone{newTestZone(f, "fuzz.test.", provenZone), newTestZone(f, "fuzz.test.", provenZone), newTestZone(f, "fuzz.test.", provenZone)}
	zones[0].addNSEC()
	zones[1].addNSEC3(false)
	zones[2].addNSEC3(true)
	var pools [3][][]dns.RR
	for i, z := range zones {
		for _, key := range slices.SortedFunc(maps.Keys(z.sets), func(a, b rrset.Key) int { return strings.Compare(a.String(), b.String()) }) {
			set := z.signed(z.sets[key])
			if key.Type == dns.TypeNS && key.Name != z.name {
				set = z.sets[key]
			}
			pools[i] = append(pools[i], set)
		}
		for _, rr := range records(f, "$ORIGIN "+z.name+"\n$TTL 3600\n"+falseRecords) {
			pools[i] = append(pools[i], []dns.RR{rr})
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		answer, authority := make([]byte, r.IntN(3)*r.IntN(2)), make([]byte, r.IntN(6))
		for i := range answer {
			answer[i] = byte(r.Uint32())
		}
		for i := range authority {
			authority[i] = byte(r.Uint32())
		}
		f.Add(uint8(r.IntN(len(zones))), uint8(r.IntN(len(names))), uint8(r.IntN(len(rrtypes))), r.IntN(2) == 0, r.IntN(2) == 0, answer, authority)
	}
	f.Fuzz(func(t *testing.T, zone, name, rrtype uint8, exists, knowsCuts bool, answer, authority []byte) {
		z, pool := zones[int(zone)%len(zones)], pools[int(zone)%len(zones)]
		m := new(dns.Msg)
		m.SetQuestion(z.absolute(names[int(name)%len(names)]), rrtypes[int(rrtype)%len(rrtypes)])
		m.Response = true
		if !exists {
			m.Rcode = dns.RcodeNameError
		}
		for _, i := range answer[:min(6, len(answer))] {
			m.Answer = append(m.Answer, expand(pool[int(i)%len(pool)], m.Question[0].Name, i >= 128)...)
		}
		for _, i := range authority[:min(6, len(authority))] {
			m.Ns = append(m.Ns, pool[int(i)%len(pool)]...)
		}
		var cuts []string
		if knowsCuts {
			cuts = []string{"sub.fuzz.test.", "sec.fuzz.test."}
		}
		if v := z.keys.Judge(m, at, cuts...); v.Security == Secure {
			z.checkTruth(t, m)
		}
	})
}

// expand answers from a wildcard.
func expand(set []dns.RR, name string, expanded bool) (all []dns.RR) {
	for _, rr := range set {
		if rr = dns.Copy(rr); expanded && strings.HasPrefix(rr.Header().Name, "*.") {
			rr.Header().Name = name
		}
		all = append(all, rr)
	}
	return all
}

// checkTruth compares what a message says with what the zone has, from the name of the question to the end of the chain.
func (z *testZone) checkTruth(t *testing.T, m *dns.Msg) {
	name, rrtype := m.Question[0].Name, m.Question[0].Qtype
	for rrset.IsSubdomain(name, z.name) {
		want, target := z.lookup(name, rrtype)
		if said := says(m, z.name, name, rrtype); said != want {
			t.Fatalf("%s %s: the zone has %q, not %q, and this is Secure:\n%s", name, dns.TypeToString[rrtype], want, said, m)
		}
		if target == "" {
			return
		}
		name = target
	}
}

// lookup is the algorithm of RFC 1034 section 4.3.2: what the zone has for a name, and where it leads.
func (z *testZone) lookup(name string, rrtype uint16) (has, target string) {
	depth := dns.CountLabel(name)
	for n := dns.CountLabel(z.name) + 1; n <= depth; n++ {
		above := ancestor(name, n)
		if z.sets[rrset.Key{Name: above, Type: dns.TypeNS}] != nil && (n < depth || rrtype != dns.TypeDS) {
			return "referral to " + above + content(z.sets[rrset.Key{Name: above, Type: dns.TypeDS}]), ""
		}
		if dname := z.sets[rrset.Key{Name: above, Type: dns.TypeDNAME}]; dname != nil && n < depth {
			return content(dname), strings.TrimSuffix(name, above) + dname[0].(*dns.DNAME).Target
		}
	}
	owner := name
	for !z.exists(owner) {
		if owner = rrset.ParentName(owner); z.exists(owner) {
			if owner = "*." + owner; !z.exists(owner) {
				return "NXDOMAIN", ""
			}
		}
	}
	if set := z.sets[rrset.Key{Name: owner, Type: rrtype}]; set != nil {
		return content(set), ""
	}
	if set := z.sets[rrset.Key{Name: owner, Type: dns.TypeCNAME}]; set != nil {
		return content(set), set[0].(*dns.CNAME).Target
	}
	return "NOERROR", ""
}

func (z *testZone) exists(name string) bool {
	for key := range z.sets {
		if key.Type != dns.TypeNSEC3 && rrset.IsSubdomain(key.Name, name) {
			return true
		}
	}
	return false
}

// says is what a message says about a name, in the words of lookup.
func says(m *dns.Msg, zone, name string, rrtype uint16) string {
	answer, authority := groupRecords(m.Answer, zone), groupRecords(m.Ns, zone)
	for _, s := range answer {
		if s.Type == dns.TypeDNAME && isBelow(name, s.Name) {
			return content(s.records)
		}
	}
	for _, t := range []uint16{rrtype, dns.TypeCNAME} {
		if s := answer.find(name, t); s != nil {
			return content(s.records)
		}
	}
	for _, s := range authority {
		leads := s.Type == dns.TypeNS && s.Name != zone && rrset.IsSubdomain(name, s.Name) && (s.Name != name || rrtype != dns.TypeDS)
		if leads && m.Rcode == dns.RcodeSuccess && authority.find(zone, dns.TypeSOA) == nil {
			if ds := authority.find(s.Name, dns.TypeDS); ds != nil {
				return "referral to " + s.Name + content(ds.records)
			}
			return "referral to " + s.Name
		}
	}
	return dns.RcodeToString[m.Rcode]
}

// content is the rdata of a set.
func content(set []dns.RR) string {
	var all []string
	for _, rr := range set {
		all = append(all, fmt.Sprintf(" %s %s", dns.TypeToString[rr.Header().Rrtype], strings.TrimPrefix(rr.String(), rr.Header().String())))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "")
}

// nodes are the types of each name that the zone has, of delegations NS and DS only.
func (z *testZone) nodes() map[string]types {
	nodes := map[string]types{}
	for key := range z.sets {
		nodes[key.Name] = append(nodes[key.Name], key.Type)
	}
	return nodes
}

func (z *testZone) add(rr dns.RR) {
	key := rrset.Key{Name: rr.Header().Name, Type: rr.Header().Rrtype}
	z.sets[key] = append(z.sets[key], rr)
}

func (z *testZone) addNSEC() {
	nodes := z.nodes()
	names := slices.SortedFunc(maps.Keys(nodes), rrset.CompareNames)
	for i, name := range names {
		bitmap := append(nodes[name], dns.TypeRRSIG, dns.TypeNSEC)
		slices.Sort(bitmap)
		z.add(&dns.NSEC{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeNSEC, Class: dns.ClassINET}, NextDomain: names[(i+1)%len(names)], TypeBitMap: bitmap})
	}
}

// addNSEC3 leaves unsigned delegations out if there is opt-out.
func (z *testZone) addNSEC3(optOut bool) {
	hashes := map[string]types{}
	for name, bitmap := range z.nodes() {
		if optOut && bitmap.isDelegation() && !bitmap.has(dns.TypeDS) {
			continue
		}
		slices.Sort(bitmap)
		hashes[strings.ToLower(dns.HashName(name, dns.SHA1, 1, "aa"))] = bitmap
		for name = rrset.ParentName(name); isBelow(name, z.name); name = rrset.ParentName(name) {
			if h := strings.ToLower(dns.HashName(name, dns.SHA1, 1, "aa")); hashes[h] == nil {
				hashes[h] = z.nodes()[name]
			}
		}
	}
	owners := slices.Sorted(maps.Keys(hashes))
	for i, owner := range owners {
		rr := &dns.NSEC3{Hdr: dns.RR_Header{Name: owner + "." + z.name, Rrtype: dns.TypeNSEC3, Class: dns.ClassINET}, Hash: dns.SHA1, Iterations: 1, SaltLength: 1, Salt: "aa", HashLength: 20, NextDomain: owners[(i+1)%len(owners)], TypeBitMap: hashes[owner]}
		if optOut {
			rr.Flags = optOutFlag
		}
		z.add(rr)
	}
}

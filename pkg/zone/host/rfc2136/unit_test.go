package rfc2136

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// rr reads "name ttl type rdata, rdata".
func rr(s string) rrset.RRset {
	var name, rrtype string
	var ttl uint32
	if _, err := fmt.Sscan(s, &name, &ttl, &rrtype); err != nil {
		panic(err)
	}
	_, rdata, _ := strings.Cut(s, " "+rrtype+" ")
	return rrset.New(rrset.Key{Name: name, Type: dns.StringToType[rrtype]}, ttl, strings.Split(rdata, ", ")...)
}

func rrs(list ...string) (out []rrset.RRset) {
	for _, s := range list {
		out = append(out, rr(s))
	}
	return out
}

// lines shows an update's records in order: "-" deletes a record, "--" an RRset, "+" adds.
func lines(m *dns.Msg) []string {
	var out []string
	for _, rr := range m.Ns {
		h := rr.Header()
		data := strings.TrimPrefix(rr.String(), h.String())
		switch h.Class {
		case dns.ClassANY:
			out = append(out, fmt.Sprintf("-- %s %s", h.Name, dns.Type(h.Rrtype)))
		case dns.ClassNONE:
			out = append(out, fmt.Sprintf("- %s %s %s", h.Name, dns.Type(h.Rrtype), data))
		default:
			out = append(out, fmt.Sprintf("+ %s %d %s %s", h.Name, h.Ttl, dns.Type(h.Rrtype), data))
		}
	}
	return out
}

// TestMessage: what is sent, in which order, for changes that fit into one message.
func TestMessage(t *testing.T) {
	for name, tc := range map[string]struct {
		changes plan.Changes
		want    []string
	}{
		"create": {plan.Changes{Create: rrs("a.z. 60 A 192.0.2.1, 192.0.2.2")},
			[]string{"+ a.z. 60 A 192.0.2.1", "+ a.z. 60 A 192.0.2.2"}},
		"delete": {plan.Changes{Delete: rrs("a.z. 60 A 192.0.2.1, 192.0.2.2")},
			[]string{"-- a.z. A"}},
		"only what differs": {plan.Changes{UpdateOld: rrs("a.z. 60 A 192.0.2.1, 192.0.2.2"), UpdateNew: rrs("a.z. 60 A 192.0.2.2, 192.0.2.3")},
			[]string{"- a.z. A 192.0.2.1", "+ a.z. 60 A 192.0.2.3"}},
		"another TTL": {plan.Changes{UpdateOld: rrs("a.z. 60 A 192.0.2.1, 192.0.2.2"), UpdateNew: rrs("a.z. 30 A 192.0.2.2")},
			[]string{"-- a.z. A", "+ a.z. 30 A 192.0.2.2"}},
		"apex NS added before deleted": {plan.Changes{UpdateOld: rrs("z. 60 NS a.z."), UpdateNew: rrs("z. 60 NS b.z.")},
			[]string{"+ z. 60 NS b.z.", "- z. NS a.z."}},
		"apex NS, another TTL": {plan.Changes{UpdateOld: rrs("z. 60 NS a.z., b.z."), UpdateNew: rrs("z. 30 NS b.z., c.z.")},
			[]string{"+ z. 30 NS b.z.", "+ z. 30 NS c.z.", "- z. NS a.z."}},
		"apex NS deleted": {plan.Changes{Delete: rrs("z. 60 NS a.z.")},
			[]string{"- z. NS a.z."}},
		"deletes before adds": {plan.Changes{Create: rrs("a.z. 60 A 192.0.2.1", "b.z. 60 CNAME a.z."), Delete: rrs("b.z. 60 TXT \"x\"", "c.z. 60 A 192.0.2.9")},
			[]string{"-- b.z. TXT", "-- c.z. A", "+ a.z. 60 A 192.0.2.1", "+ b.z. 60 CNAME a.z."}},
		"name servers after their addresses": {plan.Changes{
			Create: rrs("n.z. 60 A 192.0.2.1"), Delete: rrs("o.z. 60 A 192.0.2.2"),
			UpdateOld: rrs("z. 60 NS o.z."), UpdateNew: rrs("z. 60 NS n.z."),
		}, []string{"-- o.z. A", "+ n.z. 60 A 192.0.2.1", "+ z. 60 NS n.z.", "- z. NS o.z."}},
	} {
		t.Run(name, func(t *testing.T) {
			units, refused := unitsOf(Target{Zone: "z."}, tc.changes, defaultLimits)
			if len(refused) > 0 {
				t.Fatal(refused)
			}
			have := rrset.SOA{MName: "m.", RName: "r.", Serial: 7, TTL: 60}
			want := have
			want.Serial = 8
			m := buildMessage("z.", have, want, units)
			soa := "+ z. 60 SOA m. r. 8 0 0 0 0"
			if diff := cmp.Diff(append([]string{soa}, tc.want...), lines(m)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			prerequisite := m.Answer[0].String()
			if len(m.Answer) != 1 || prerequisite != "z.\t0\tIN\tSOA\tm. r. 7 0 0 0 0" {
				t.Errorf("prerequisite %s", prerequisite)
			}
			if _, err := m.Pack(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUnits: what belongs together stays together, and the order over messages keeps name servers reachable.
func TestUnits(t *testing.T) {
	changes := plan.Changes{
		Create:    rrs("z. 60 MX 1 n.z.", "c.z. 60 A 192.0.2.1", "c.z. 60 TXT \"x\"", "d.z. 60 CNAME c.z.", "n.z. 60 A 192.0.2.1", "x.z. 60 TXT \"x\""),
		Delete:    rrs("c.z. 60 CNAME x.z.", "d.z. 60 A 192.0.2.2", "d.z. 60 MX 1 n.z.", "e.z. 60 TXT \"x\"", "o.z. 60 AAAA ::1"),
		UpdateOld: append(rrs("z. 60 NS o.z."), rrset.RRset{}),
		UpdateNew: append(rrs("z. 60 NS n.z."), rrset.RRset{Key: rrset.Key{Name: "bad.z.", Type: dns.TypeA}, Rdata: []string{"no address"}}),
	}
	units, refused := unitsOf(Target{Zone: "z."}, changes, defaultLimits)
	var got []string
	for _, u := range units {
		var keys []string
		for _, k := range u.keys {
			keys = append(keys, k.String())
		}
		got = append(got, strings.Join(keys, " + "))
	}
	want := []string{
		"c.z. CNAME + c.z. A + c.z. TXT", "n.z. A",
		"x.z. TXT",
		"z. NS", "z. MX",
		"e.z. TXT",
		"d.z. A + d.z. MX + d.z. CNAME", "o.z. AAAA",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(refused) != 1 || refused[rrset.Key{Name: "bad.z.", Type: dns.TypeA}] == nil {
		t.Errorf("refused %v", refused)
	}
}

// TestBatches: messages keep their limits, nothing is lost, and the estimate is never too low.
func TestBatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var c plan.Changes
		n, large := rng.IntN(3000), rng.IntN(40)
		for i := range n {
			name := fmt.Sprintf("h%d.%s", i, strings.Repeat("long-label.", rng.IntN(1+large/4))+"z.")
			s := rrset.New(rrset.Key{Name: name, Type: dns.TypeTXT}, 60, fmt.Sprintf("%q", strings.Repeat("t", rng.IntN(1+large*6))))
			switch rng.IntN(3) {
			case 0:
				c.Create = append(c.Create, s)
			case 1:
				c.Delete = append(c.Delete, s)
			default:
				o := s
				o.TTL = uint32(59 + rng.IntN(2))
				o.Rdata = []string{`"old"`}
				c.UpdateOld, c.UpdateNew = append(c.UpdateOld, o), append(c.UpdateNew, s)
			}
		}
		units, _ := unitsOf(Target{Zone: "z."}, c, defaultLimits)
		total := 0
		all := packBatches(units, defaultLimits)
		for _, batch := range all {
			total += len(batch)
			m := buildMessage("z.", rrset.SOA{MName: "m.", RName: "r."}, rrset.SOA{MName: "m.", RName: "r."}, batch)
			if m.Len() > defaultLimits.bytes+200 || len(m.Ns) > defaultLimits.records+1 {
				t.Fatalf("a message of %d bytes and %d records", m.Len(), len(m.Ns))
			}
		}
		if total != len(units) || len(all) > Batches(c) {
			t.Fatalf("%d of %d units in %d messages, estimated %d", total, len(units), len(all), Batches(c))
		}
	}
	if n := Batches(plan.Changes{}); n != 1 {
		t.Errorf("nothing needs %d messages", n)
	}
	if n := Batches(plan.Changes{Create: rrs("a.z. 60 A 192.0.2.1, 192.0.2.2")}); n != 1 {
		t.Errorf("one RRset needs %d messages", n)
	}
}

// RRsets of a group change in one message, if each of them is as it was read.
func TestGroups(t *testing.T) {
	was, is := rrs("a.z. 60 A 192.0.2.1"), rrs("a.z. 60 A 192.0.2.2")
	c := plan.Changes{
		Create: rrs("a.mark.z. 60 TXT \"new\"", "b.z. 60 A 192.0.2.1"), UpdateOld: was, UpdateNew: is, Delete: rrs("b.mark.z. 60 TXT \"old\""),
	}
	group := func(key rrset.Key) string { return key.Name[:1] }
	units, refused := unitsOf(Target{Zone: "z.", Shared: true, Group: group}, c, defaultLimits)
	if len(units) != 2 || len(refused) > 0 {
		t.Fatalf("%d units: %+v, refused %v", len(units), units, refused)
	}
	for _, u := range units {
		if len(u.keys) != 2 || group(u.keys[0]) != group(u.keys[1]) || len(u.requires) != 2 {
			t.Errorf("a unit changes %v, and requires %v", u.keys, u.requires)
		}
	}
}

// TestSerials: the last message takes the wanted serial; those before it leave room for more.
func TestSerials(t *testing.T) {
	for name, tc := range map[string]struct {
		have, want uint32
		left       int
		next       uint32
	}{
		"the only one":              {7, 100, 1, 100},
		"one of several":            {7, 100, 3, 8},
		"no room":                   {7, 8, 3, 8},
		"beyond the wanted":         {8, 8, 1, 9},
		"zero is left out":          {4294967295, 5, 2, 1},
		"the last round the corner": {4294967295, 5, 1, 5},
	} {
		t.Run(name, func(t *testing.T) {
			a := applyRun{want: rrset.SOA{Serial: tc.want}}
			if got := a.soaAfter(rrset.SOA{Serial: tc.have}, tc.left).Serial; got != tc.next {
				t.Errorf("%d, want %d", got, tc.next)
			}
		})
	}
}

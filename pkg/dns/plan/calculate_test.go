package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

type content = Map

func zone(sets ...rrset.RRset) content {
	c := content{}
	for _, s := range sets {
		c[s.Key] = s
	}
	return c
}

func keys(sets ...rrset.RRset) func(rrset.Key) bool { return in(zone(sets...)) }

func in[V any](m map[rrset.Key]V) func(rrset.Key) bool {
	return func(key rrset.Key) bool {
		_, ok := m[key]
		return ok
	}
}

func all(rrset.Key) bool  { return true }
func none(rrset.Key) bool { return false }

func a(name string, ttl uint32, rdata ...string) rrset.RRset {
	return rrset.New(rrset.Key{Name: name, Type: dns.TypeA}, ttl, rdata...)
}

func cname(name, target string) rrset.RRset {
	return rrset.New(rrset.Key{Name: name, Type: dns.TypeCNAME}, 300, target)
}

func TestCalculate(t *testing.T) {
	www, ftp := a("www.example.", 300, "192.0.2.1"), a("ftp.example.", 300, "192.0.2.2")
	other := a("www.example.", 300, "192.0.2.9")
	alias := cname("www.example.", "ftp.example.")
	signature := rrset.New(rrset.Key{Name: "www.example.", Type: dns.TypeRRSIG}, 300, "x")
	var maintained []rrset.RRset
	for _, rrtype := range []uint16{
		dns.TypeSOA, dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeNSEC3PARAM, dns.TypeDNSKEY, dns.TypeCDS, dns.TypeCDNSKEY, 65534,
	} {
		maintained = append(maintained, rrset.New(rrset.Key{Name: "example.", Type: rrtype}, 300, "x"))
	}
	for name, test := range map[string]struct {
		want, observed, owned []rrset.RRset
		wantSOA, haveSOA      rrset.SOA
		changes               Changes
	}{
		"nothing anywhere": {},
		"in sync":          {want: []rrset.RRset{www}, observed: []rrset.RRset{www}, owned: []rrset.RRset{www}},
		"serial is no change": {
			wantSOA: rrset.SOA{MName: "ns.", Serial: 1}, haveSOA: rrset.SOA{MName: "ns.", Serial: 7},
		},
		"SOA": {
			wantSOA: rrset.SOA{MName: "ns."}, haveSOA: rrset.SOA{MName: "ns.", Expire: 1}, changes: Changes{SOA: true},
		},
		"create, in order": {
			want:    []rrset.RRset{www, a("a.www.example.", 1, "192.0.2.3"), ftp},
			changes: Changes{Create: []rrset.RRset{ftp, www, a("a.www.example.", 1, "192.0.2.3")}},
		},
		"new value": {
			want: []rrset.RRset{www}, observed: []rrset.RRset{other},
			changes: Changes{UpdateOld: []rrset.RRset{other}, UpdateNew: []rrset.RRset{www}},
		},
		"new TTL": {
			want: []rrset.RRset{www}, observed: []rrset.RRset{a("www.example.", 60, "192.0.2.1")},
			changes: Changes{UpdateOld: []rrset.RRset{a("www.example.", 60, "192.0.2.1")}, UpdateNew: []rrset.RRset{www}},
		},
		"delete what is ours": {
			observed: []rrset.RRset{www, ftp}, owned: []rrset.RRset{www},
			changes: Changes{Delete: []rrset.RRset{www}},
		},
		"owned and already gone":           {owned: []rrset.RRset{www}},
		"never what a server keeps itself": {observed: maintained, owned: maintained},
		"address becomes alias": {
			want: []rrset.RRset{alias}, observed: []rrset.RRset{www}, owned: []rrset.RRset{www},
			changes: Changes{Create: []rrset.RRset{alias}, Delete: []rrset.RRset{www}},
		},
		"alias at a foreign name": {
			want: []rrset.RRset{alias, ftp}, observed: []rrset.RRset{www},
			changes: Changes{Create: []rrset.RRset{ftp}, Conflicts: []Conflict{{Want: alias, Foreign: []rrset.Key{www.Key}}}},
		},
		"address beside a foreign alias": {
			want: []rrset.RRset{www}, observed: []rrset.RRset{alias},
			changes: Changes{Conflicts: []Conflict{{Want: www, Foreign: []rrset.Key{alias.Key}}}},
		},
		"address beside foreign data": {
			want: []rrset.RRset{www}, observed: []rrset.RRset{rrset.New(rrset.Key{Name: "www.example.", Type: dns.TypeTXT}, 1, `"x"`)},
			changes: Changes{Create: []rrset.RRset{www}},
		},
		"alias beside its signature": {
			want: []rrset.RRset{alias}, observed: []rrset.RRset{signature}, changes: Changes{Create: []rrset.RRset{alias}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			observed := zone(test.observed...)
			got := Calculate(zone(test.want...), observed, keys(test.owned...), test.wantSOA, test.haveSOA)
			if diff := cmp.Diff(test.changes, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(zone(test.observed...), observed); diff != "" {
				t.Errorf("observed changed: %s", diff)
			}
		})
	}
}

// apply is a server that does what it is told.
func apply(c content, changes Changes) content {
	c = maps.Clone(c)
	for _, sets := range [][]rrset.RRset{changes.Delete, changes.UpdateOld} {
		for _, s := range sets {
			delete(c, s.Key)
		}
	}
	for _, sets := range [][]rrset.RRset{changes.Create, changes.UpdateNew} {
		for _, s := range sets {
			c[s.Key] = s
		}
	}
	return c
}

// random gives content in which names, types and values often coincide, without CNAMEs.
func random(r *rand.Rand, sets int) content {
	c := content{}
	types := []uint16{dns.TypeA, dns.TypeTXT, dns.TypeMX}
	for range sets {
		k := rrset.Key{Name: fmt.Sprintf("n%d.example.", r.IntN(sets)), Type: types[r.IntN(len(types))]}
		c[k] = rrset.New(k, uint32(r.IntN(2)), fmt.Sprint(r.IntN(3)), fmt.Sprint(r.IntN(3)))
	}
	return c
}

func TestApplyingReachesDesired(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		want, observed, owned := random(r, 30), random(r, 30), map[rrset.Key]struct{}{}
		for k := range observed {
			if r.IntN(2) == 0 {
				owned[k] = struct{}{}
			}
		}
		changes := Calculate(want, observed, in(owned), rrset.SOA{}, rrset.SOA{})
		after := apply(observed, changes)

		expected := maps.Clone(observed)
		maps.DeleteFunc(expected, func(k rrset.Key, _ rrset.RRset) bool { _, ours := owned[k]; return ours })
		maps.Copy(expected, want)
		if diff := cmp.Diff(expected, after); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if again := Calculate(want, after, in(owned), rrset.SOA{}, rrset.SOA{}); again.HasChanges() {
			t.Fatalf("seed %d: a second plan has changes: %+v", seed, again)
		}
		if diff := cmp.Diff(changes, Calculate(want, observed, in(owned), rrset.SOA{}, rrset.SOA{})); diff != "" {
			t.Fatalf("seed %d: the plan depends on the order: %s", seed, diff)
		}
		if n := changes.Len(); n != len(changes.Create)+len(changes.UpdateOld)+len(changes.Delete) {
			t.Fatalf("seed %d: updates do not come in pairs", seed)
		}
		for i := range changes.UpdateNew {
			if changes.UpdateNew[i].Key != changes.UpdateOld[i].Key {
				t.Fatalf("seed %d: update %d replaces another RRset", seed, i)
			}
		}
	}
}

func BenchmarkCalculate(b *testing.B) {
	const size = 100_000
	want := make(content, size)
	for i := range size {
		s := a(fmt.Sprintf("host-%d.example.com.", i), 300, "192.0.2.1")
		want[s.Key] = s
	}
	foreign := maps.Clone(want)
	foreign[rrset.Key{Name: "foreign.example.com.", Type: dns.TypeA}] = a("foreign.example.com.", 300, "192.0.2.1")
	for name, observed := range map[string]content{"unchanged": want, "unchanged beside foreign data": foreign, "empty server": {}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Calculate(want, observed, in(want), rrset.SOA{}, rrset.SOA{})
			}
		})
	}
}

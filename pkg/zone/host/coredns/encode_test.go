package coredns

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/hosttest"
)

const zone = "example.test."

var ours = layout{prefix: "/skydns", owner: "team/corp", zone: zone}

// snapshotOf returns values as if they had been read.
func snapshotOf(l layout, values []keyValue) *snapshot {
	s := &snapshot{layout: l, revision: 7}
	for _, v := range values {
		s.entries = append(s.entries, newEntry(v.key, []byte(encodeJSON(&v.value)), 5))
	}
	slices.SortFunc(s.entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	return s
}

// TestEncodeIsAnswered: of whatever a zone is to hold, all that is not refused is answered exactly, and read back as ours and whole.
func TestEncodeIsAnswered(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		want := hosttest.RandomZone(r, zone, 1+r.IntN(20))
		refused, held := ours.unsupported(want)
		s := snapshotOf(ours, ours.encode(held))
		c, err := newContent(s)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for key, set := range want {
			if refused[key] != "" {
				continue
			}
			n++
			if got, _ := s.answer(key); !got.Equal(set) {
				t.Fatalf("seed %d: answered %s, want %s; zone %s", seed, got, set, show(want))
			}
			if got, _ := c.Get(key); !got.Equal(set) {
				t.Fatalf("seed %d: content %s, want %s", seed, got, set)
			}
			if got, _ := c.ours.get(key.Name, key.Type); !got.Equal(set) {
				t.Fatalf("seed %d: ours %s, want %s", seed, got, set)
			}
		}
		if c.Len() != n {
			t.Fatalf("seed %d: %d RRsets, want %d: %s", seed, c.Len(), n, show(want))
		}
	}
}

func show(sets plan.Map) string {
	var lines []string
	for _, set := range sets {
		lines = append(lines, set.String())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func set(name, rrtype string, ttl uint32, rdata ...string) rrset.RRset {
	if name == "@" {
		name = zone
	} else {
		name += "." + zone
	}
	return rrset.New(rrset.Key{Name: name, Type: dns.StringToType[rrtype]}, ttl, rdata...)
}

func mapOf(sets ...rrset.RRset) plan.Map {
	m := plan.Map{}
	for _, s := range sets {
		m[s.Key] = s
	}
	return m
}

// TestUnsupported has what is refused, and what beside it is not.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	mx := set("@", "MX", 60, "10 mail.elsewhere.test.")
	for name, tc := range map[string]struct {
		sets []rrset.RRset
		want []rrset.Key
	}{
		"usual zone": {sets: []rrset.RRset{
			set("@", "A", 60, "192.0.2.1"), set("@", "AAAA", 60, "2001:db8::1"), set("@", "NS", 60, "ns1.example.test."), set("@", "MX", 60, "10 mail.example.test."),
			set("@", "TXT", 60, `"v=spf1 -all"`), set("www", "CNAME", 60, "cdn.elsewhere.test."), set("_sip._tcp", "SRV", 60, "10 100 5060 sip.example.test."),
			set("app", "A", 60, "192.0.2.2"), set("a.app", "A", 60, "192.0.2.3"), set("www.app", "CNAME", 60, "elsewhere.test."), set("_acme-challenge.www", "TXT", 60, `"x"`),
		}},
		"wildcard":                      {sets: []rrset.RRset{set("*", "A", 60, "192.0.2.1")}, want: []rrset.Key{set("*", "A", 0).Key}},
		"delegation":                    {sets: []rrset.RRset{set("sub", "NS", 60, "ns.elsewhere.test.")}, want: []rrset.Key{set("sub", "NS", 0).Key}},
		"CAA":                           {sets: []rrset.RRset{set("@", "CAA", 60, `0 issue "x"`)}, want: []rrset.Key{set("@", "CAA", 0).Key}},
		"TTL 0":                         {sets: []rrset.RRset{set("a", "A", 0, "192.0.2.1")}, want: []rrset.Key{set("a", "A", 0).Key}},
		"preference 0":                  {sets: []rrset.RRset{set("a", "MX", 60, "0 mail.example.test.")}, want: []rrset.Key{set("a", "MX", 0).Key}},
		"weight":                        {sets: []rrset.RRset{set("a", "SRV", 60, "10 20 1 b.example.test.")}, want: []rrset.Key{set("a", "SRV", 0).Key}},
		"weights":                       {sets: []rrset.RRset{set("a", "SRV", 60, "10 33 1 b.test.", "10 33 1 c.test.", "10 33 1 d.test.")}},
		"MX elsewhere":                  {sets: []rrset.RRset{mx}},
		"MX elsewhere and TXT":          {sets: []rrset.RRset{mx, set("@", "TXT", 60, `"x"`)}, want: []rrset.Key{mx.Key}},
		"MX elsewhere and apex address": {sets: []rrset.RRset{mx, set("@", "A", 60, "192.0.2.1")}},
		"alias of a name below":         {sets: []rrset.RRset{set("a", "CNAME", 60, "b.a.example.test.")}, want: []rrset.Key{set("a", "CNAME", 0).Key}},
		"two PTR":                       {sets: []rrset.RRset{set("1", "PTR", 60, "a.test.", "b.test.")}, want: []rrset.Key{set("1", "PTR", 0).Key}},
		"name that it uses":             {sets: []rrset.RRset{set("x.apex.dns", "A", 60, "192.0.2.1")}, want: []rrset.Key{set("x.apex.dns", "A", 0).Key}},
		"alias below alias": {
			sets: []rrset.RRset{set("a", "CNAME", 60, "x.test."), set("b.a", "CNAME", 60, "x.test.")},
			want: []rrset.Key{set("b.a", "CNAME", 0).Key},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused, _ := ours.unsupported(mapOf(tc.sets...))
			var keys []rrset.Key
			for key, reason := range refused {
				keys = append(keys, key)
				t.Log(key, reason)
			}
			if diff := cmp.Diff(tc.want, keys); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDamagedValues: whatever value of a zone is missing or another one, an RRset is not read back as it is declared.
func TestDamagedValues(t *testing.T) {
	t.Parallel()
	missing, changed := 0, 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		want := hosttest.RandomZone(r, zone, 1+r.IntN(20))
		refused, held := ours.unsupported(want)
		values := ours.encode(held)
		if len(values) == 0 {
			continue
		}
		i := r.IntN(len(values))
		key, v := values[i].key, &values[i].value
		if r.IntN(2) == 0 {
			values = slices.Delete(values, i, i+1)
			missing++
		} else {
			v.TTL, v.Group = v.TTL+uint32(r.IntN(2)), v.Group+"x"
			changed++
		}
		c, err := newContent(snapshotOf(ours, values))
		if err != nil {
			t.Fatal(err)
		}
		isWhole := func(set rrset.RRset) bool { got, _ := c.Get(set.Key); return got.Equal(set) }
		if !slices.ContainsFunc(slices.Collect(want.All()), func(set rrset.RRset) bool { return refused[set.Key] == "" && !isWhole(set) }) {
			t.Fatalf("seed %d: nothing shows that %s is not as it should be; zone %s", seed, key, show(want))
		}
	}
	if min(missing, changed) < 100 {
		t.Errorf("%d were missing, %d changed", missing, changed)
	}
}

package observe

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// fromRecords is mirrorFromRecords of a transfer without errors.
func fromRecords(zone string, r wire.TransferResult, like *Mirror) *Mirror {
	m, err := mirrorFromRecords(zone, r, like)
	if err != nil {
		panic(err)
	}
	return m
}

func record(name string, ttl uint32, rdata string) wire.Record {
	return wire.Record{Key: rrset.Key{Name: name + ".z.", Type: dns.TypeA}, TTL: ttl, Rdata: rdata}
}

func at(serial uint32) rrset.SOA { return rrset.SOA{Serial: serial} }

func contentOf(m *Mirror) map[rrset.Key]rrset.RRset { return maps.Collect(m.content.All()) }

// lines is the content in order.
func (m *Mirror) lines() []string {
	var out []string
	for s := range m.All() {
		out = append(out, s.String())
	}
	slices.Sort(out)
	return out
}

func TestMirror(t *testing.T) {
	start := fromRecords("z.", wire.TransferResult{SOA: at(5), Full: true, Records: []wire.Record{
		record("a", 60, "192.0.2.2"), record("a", 60, "192.0.2.1"), record("b", 60, "192.0.2.1"),
		record("a", 60, "192.0.2.3"), // the rest of an RRset may come later
	}}, nil)
	before := start.lines()
	if diff := cmp.Diff([]string{"a.z. 60 A 192.0.2.1, 192.0.2.2, 192.0.2.3", "b.z. 60 A 192.0.2.1"}, before); diff != "" {
		t.Fatal(diff)
	}
	for name, tc := range map[string]struct {
		result wire.TransferResult
		want   []string // nil when the steps do not fit
	}{
		"nothing": {wire.TransferResult{SOA: at(5), UpToDate: true}, before},
		"values and TTL": {wire.TransferResult{SOA: at(6), Deltas: []wire.Delta{{
			From: at(5), To: at(6),
			Deleted: []wire.Record{record("a", 60, "192.0.2.1"), record("a", 60, "192.0.2.3"), record("b", 60, "192.0.2.1")},
			Added:   []wire.Record{record("b", 30, "192.0.2.1"), record("c", 60, "192.0.2.1")},
		}}}, []string{"a.z. 60 A 192.0.2.2", "b.z. 30 A 192.0.2.1", "c.z. 60 A 192.0.2.1"}},
		"two steps": {wire.TransferResult{SOA: at(9), Deltas: []wire.Delta{
			{From: at(5), To: at(7), Added: []wire.Record{record("c", 60, "192.0.2.1")}},
			{From: at(7), To: at(9), Deleted: []wire.Record{record("c", 60, "192.0.2.1"), record("b", 60, "192.0.2.1")}},
		}}, []string{"a.z. 60 A 192.0.2.1, 192.0.2.2, 192.0.2.3"}},
		"steps from elsewhere": {wire.TransferResult{SOA: at(6), Deltas: []wire.Delta{{From: at(4), To: at(6)}}}, nil},
		"steps to elsewhere":   {wire.TransferResult{SOA: at(7), Deltas: []wire.Delta{{From: at(5), To: at(6)}}}, nil},
		"a deleted stranger":   {wire.TransferResult{SOA: at(6), Deltas: []wire.Delta{{From: at(5), To: at(6), Deleted: []wire.Record{record("a", 60, "192.0.2.9")}}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := start.applyDeltas(tc.result, nil)
			if (err != nil) != (tc.want == nil) {
				t.Fatal(err)
			}
			if err == nil {
				if diff := cmp.Diff(tc.want, got.lines()); diff != "" || got.SOA != tc.result.SOA || got.Len() != len(tc.want) {
					t.Errorf("SOA %+v, %d RRsets, %s", got.SOA, got.Len(), diff)
				}
			}
			if diff := cmp.Diff(before, start.lines()); diff != "" || start.SOA != at(5) || start.Len() != 2 {
				t.Errorf("the mirror that was the base has changed: %s", diff)
			}
		})
	}
}

func TestEmptyMirror(t *testing.T) {
	for name, m := range map[string]*Mirror{"zero": {}, "new": NewMirror("z.", at(1))} {
		if _, ok := m.Get(rrset.Key{Name: "a.z.", Type: dns.TypeA}); ok || m.Len() != 0 || len(contentOf(m)) != 0 || len(m.lines()) != 0 {
			t.Errorf("%s: not empty", name)
		}
		next, err := m.applyDeltas(wire.TransferResult{SOA: at(2), Deltas: []wire.Delta{{From: m.SOA, To: at(2), Added: []wire.Record{record("a", 60, "192.0.2.1")}}}}, nil)
		if err != nil || next.Len() != 1 || m.Len() != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMirrorGrows: a zone that grows by steps, and shrinks again, is what it would be by a full transfer.
func TestMirrorGrows(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	m, content := NewMirror("z.", at(1)), map[rrset.Key]rrset.RRset{}
	step := func(n int, remove bool) {
		d := wire.Delta{From: m.SOA, To: at(m.SOA.Serial + 1)}
		for range n {
			r := record(fmt.Sprint("n", rng.IntN(20_000)), 60, "192.0.2.1")
			_, exists := content[r.Key]
			switch {
			case exists && remove:
				d.Deleted = append(d.Deleted, r)
				delete(content, r.Key)
			case !exists && !remove:
				d.Added = append(d.Added, r)
				content[r.Key] = rrset.New(r.Key, r.TTL, r.Rdata)
			}
		}
		next, err := m.applyDeltas(wire.TransferResult{SOA: d.To, Deltas: []wire.Delta{d}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		m = next
		if m.Len() != len(content) {
			t.Fatalf("%d RRsets, want %d", m.Len(), len(content))
		}
	}
	for i := range 200 {
		step(200, i%5 == 4)
	}
	if diff := cmp.Diff(content, contentOf(m)); diff != "" {
		t.Error(diff)
	}
	for range 200 {
		step(500, true)
	}
	if diff := cmp.Diff(content, contentOf(m)); diff != "" {
		t.Error(diff)
	}
}

func large(n int) wire.TransferResult {
	r := wire.TransferResult{SOA: at(5), Full: true}
	for i := range n {
		r.Records = append(r.Records, record(fmt.Sprintf("host-%d", i), 60, fmt.Sprintf("192.0.%d.%d", i>>8&255, i&255)))
	}
	return r
}

// TestMirrorsShareMemory: the mirror of a second server in sync costs next to nothing.
func TestMirrorsShareMemory(t *testing.T) {
	heap := func() int64 { // It may shrink by what an earlier test has left.
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	const n = 100_000
	base := heap()
	first := fromRecords("z.", large(n), nil)
	one := heap() - base
	second := fromRecords("z.", large(n), first)
	two := heap() - base - one
	next, err := second.applyDeltas(wire.TransferResult{SOA: at(6), Deltas: []wire.Delta{{From: at(5), To: at(6), Added: []wire.Record{record("new", 60, "192.0.2.1")}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	three := heap() - base - one - two
	t.Logf("100,000 RRsets: %d bytes each, %d in a second mirror, %d bytes in all for one change", one/n, two/n, three)
	if two > one/20 || three > one/20 {
		t.Errorf("%d bytes, %d for the second mirror, %d for a change", one, two, three)
	}
	runtime.KeepAlive(first)
	runtime.KeepAlive(second)
	runtime.KeepAlive(next)
}

func BenchmarkApplyOneChange(b *testing.B) {
	m := fromRecords("z.", large(100_000), nil)
	d := wire.TransferResult{SOA: at(6), Deltas: []wire.Delta{{From: at(5), To: at(6), Added: []wire.Record{record("new", 60, "192.0.2.1")}}}}
	for b.Loop() {
		if _, err := m.applyDeltas(d, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestChangedNames compares with the definition, between versions of one mirror and mirrors made apart, and looks at what
// is at each name.
func TestChangedNames(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	types := []uint16{dns.TypeA, dns.TypeTXT, dns.TypeMX}
	change := func(m *Mirror, n int) *Mirror {
		d := wire.Delta{From: m.SOA, To: at(m.SOA.Serial + 1)}
		for range n {
			r := record(fmt.Sprint("n", rng.IntN(3_000)), 60, "x")
			r.Type = types[rng.IntN(len(types))]
			if _, ok := m.Get(r.Key); ok && !slices.Contains(d.Deleted, r) {
				d.Deleted = append(d.Deleted, r)
			} else if !ok {
				d.Added = append(d.Added, r)
			}
		}
		next, err := m.applyDeltas(wire.TransferResult{SOA: d.To, Deltas: []wire.Delta{d}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	mirrors := []*Mirror{nil, {}, change(NewMirror("z.", at(1)), 2_000)}
	for i := range 12 {
		mirrors = append(mirrors, change(mirrors[len(mirrors)-1], 1+rng.IntN(20*(1+i))))
	}
	for _, m := range mirrors[1:] {
		for _, old := range append([]*Mirror{NewMirror("z.", at(1), slices.Collect(m.All())...)}, mirrors...) {
			was := map[rrset.Key]rrset.RRset{}
			if old != nil {
				was = contentOf(old)
			}
			want := map[string]bool{}
			for key, s := range contentOf(m) {
				if !s.Equal(was[key]) {
					want[key.Name] = true
				}
			}
			for key := range was {
				if _, ok := m.Get(key); !ok {
					want[key.Name] = true
				}
			}
			got := map[string]bool{}
			for name := range m.ChangedNames(old) {
				got[name] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
			if old != nil && m.SameContent(old) != (len(want) == 0) {
				t.Errorf("SameContent gives %t, but %d names differ", m.SameContent(old), len(want))
			}
		}
		byName := map[rrset.Key]rrset.RRset{}
		for s := range m.All() {
			for at := range m.At(s.Name) {
				if at.Name != s.Name {
					t.Fatalf("%s is not at %s", at, s.Name)
				}
				byName[at.Key] = at
			}
		}
		if diff := cmp.Diff(contentOf(m), byName); diff != "" {
			t.Fatal(diff)
		}
		for s := range m.At("absent.z.") {
			t.Error(s)
		}
	}
}

func BenchmarkChangedNames(b *testing.B) {
	m := fromRecords("z.", large(100_000), nil)
	next, err := m.applyDeltas(wire.TransferResult{SOA: at(6), Deltas: []wire.Delta{{From: at(5), To: at(6), Added: []wire.Record{record("new", 60, "192.0.2.1")}}}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if names := slices.Collect(next.ChangedNames(m)); len(names) != 1 {
			b.Fatal(names)
		}
	}
}

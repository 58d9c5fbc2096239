package observe

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// allocated returns how many bytes do allocated: a measure of its work that does not depend on the machine.
func allocated(do func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}

// TestMirrorIsLinear: four times the records take some four times the work, whatever their order; copying an RRset for each
// of its records would take sixteen times.
func TestMirrorIsLinear(t *testing.T) {
	address := func(i int) string { return fmt.Sprintf("192.0.%d.%d", i>>8&255, i&255) }
	cases := map[string]func(n int) *Mirror{
		"one RRset": func(n int) *Mirror {
			r := wire.TransferResult{SOA: at(5), Full: true}
			for i := range n {
				r.Records = append(r.Records, record("a", 60, address(i)))
			}
			return fromRecords("z.", r, nil)
		},
		"alternating owners": func(n int) *Mirror {
			r := wire.TransferResult{SOA: at(5), Full: true}
			for i := range n {
				r.Records = append(r.Records, record(string(rune('a'+i%2)), 60, address(i)))
			}
			return fromRecords("z.", r, nil)
		},
		"steps that grow and shrink an RRset": func(n int) *Mirror {
			m := NewMirror("z.", at(1))
			r := wire.TransferResult{SOA: at(uint32(n/2 + 1))}
			for i := range n / 2 {
				d := wire.Delta{From: at(uint32(i + 1)), To: at(uint32(i + 2)), Added: []wire.Record{record("a", 60, address(2*i)), record("a", 60, address(2*i+1))}}
				if i > 0 {
					d.Deleted = []wire.Record{record("a", 60, address(2*i-2))}
				}
				r.Deltas = append(r.Deltas, d)
			}
			next, err := m.applyDeltas(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			return next
		},
	}
	for name, build := range cases {
		t.Run(name, func(t *testing.T) {
			build(100)
			few := allocated(func() { build(4_000) })
			many := allocated(func() { build(16_000) })
			t.Logf("%.0f and %.0f bytes", few, many)
			if many > 8*few {
				t.Errorf("four times the records took %.1f times the work", many/few)
			}
		})
	}
}

// TestGrownZone: a zone that has grown by transfers that each kept the limits is refused all the same.
func TestGrownZone(t *testing.T) {
	m := fromRecords("z.", wire.TransferResult{SOA: at(5), Full: true, Records: []wire.Record{
		record("a", 60, "192.0.2.1"), record("b", 60, "192.0.2.1"), record("c", 60, "192.0.2.1"),
	}}, nil)
	for name, c := range map[string]struct {
		limits Limits
		fits   bool
	}{
		"as many records": {Limits{ZoneRecords: m.records}, true},
		"one record less": {Limits{ZoneRecords: m.records - 1}, false},
		"as many bytes":   {Limits{ZoneBytes: m.bytes}, true},
		"one byte less":   {Limits{ZoneBytes: m.bytes - 1}, false},
		"default limits":  {Limits{}, true},
	} {
		if err := New(Options{Limits: c.limits}).checkSize(m); (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestManyTypesAtOneName: all RRsets of a name are next to each other in the map, so their number is limited.
func TestManyTypesAtOneName(t *testing.T) {
	types := func(n int) wire.TransferResult {
		r := wire.TransferResult{SOA: at(5), Full: true}
		for i := range n {
			r.Records = append(r.Records, wire.Record{Key: rrset.Key{Name: "a.z.", Type: uint16(1000 + i)}, TTL: 60, Rdata: `\# 0`})
		}
		return r
	}
	if m, err := mirrorFromRecords("z.", types(maxTypes), nil); err != nil || m.Len() != maxTypes {
		t.Errorf("%d types: %v", maxTypes, err)
	}
	_, err := mirrorFromRecords("z.", types(maxTypes+1), nil)
	if err == nil || err.Error() != "a.z. exceeds the limit of 256 types of records" {
		t.Errorf("%d types: %v", maxTypes+1, err)
	}
	m := NewMirror("z.", at(1))
	delta := wire.Delta{From: at(1), To: at(5), Added: types(maxTypes + 1).Records}
	if _, err := m.applyDeltas(wire.TransferResult{SOA: at(5), Deltas: []wire.Delta{delta}}, nil); err == nil {
		t.Error("by steps: no error")
	}
}

func ofType(rrtype uint16, name, target string) wire.Record {
	return wire.Record{Key: rrset.Key{Name: strings.TrimPrefix(name+".z.", "."), Type: rrtype}, TTL: 60, Rdata: target}
}

// TestMirrorCounts: what a mirror counts as its size is the sum of its RRsets, however it came about.
func TestMirrorCounts(t *testing.T) {
	start := fromRecords("z.", wire.TransferResult{SOA: at(5), Full: true, Records: []wire.Record{
		record("a", 60, "192.0.2.1"), record("b", 60, "192.0.2.1"), record("a", 60, "192.0.2.2"), record("a", 60, "192.0.2.2"),
		ofType(dns.TypeNS, "", "ns1.z."), ofType(dns.TypeNS, "sub", "ns1.z."), ofType(dns.TypeDNAME, "old", "z."),
	}}, nil)
	next, err := start.applyDeltas(wire.TransferResult{SOA: at(6), Deltas: []wire.Delta{{
		From: at(5), To: at(6), Added: []wire.Record{record("c", 60, "192.0.2.1"), ofType(dns.TypeNS, "sub", "ns2.z.")},
		Deleted: []wire.Record{record("b", 60, "192.0.2.1"), record("a", 60, "192.0.2.1"), ofType(dns.TypeDNAME, "old", "z.")},
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	last, err := next.applyDeltas(wire.TransferResult{SOA: at(7), Deltas: []wire.Delta{{
		From: at(6), To: at(7), Deleted: []wire.Record{ofType(dns.TypeNS, "sub", "ns1.z."), ofType(dns.TypeNS, "sub", "ns2.z.")},
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for cuts, m := range map[int]*Mirror{2: start, 1: next, 0: last} {
		want := counts{cuts: cuts}
		for s := range m.All() {
			want.records += len(s.Rdata)
			want.bytes += sizeOf(s)
		}
		if m.counts != want || m.HasCuts() != (cuts > 0) {
			t.Errorf("counted %+v, not %+v", m.counts, want)
		}
	}
}

// TestMemoryShares: servers of one namespace get at most half, so that others always find room.
func TestMemoryShares(t *testing.T) {
	o := New(Options{Limits: Limits{TotalBytes: 100}})
	reserve := func(owner string, bytes int64) string {
		if err := o.memory.reserve(owner, bytes); err != nil {
			return err.Error()
		}
		return ""
	}
	full := "the content of all zones exceeds the limit of 100 bytes, which --max-content-bytes sets"
	half := "the content of all zones of namespace a exceeds the limit of 50 bytes, half, which --max-content-bytes sets"
	got := []string{reserve("a", 50), reserve("a", 1), reserve("b", 40), reserve("c", 11), reserve("c", 10)}
	if diff := cmp.Diff([]string{"", half, "", full, ""}, got); diff != "" {
		t.Error(diff)
	}
	o.memory.Add("a", -50)
	if got := reserve("b", 10) + reserve("c", 40); got != "" || o.memory.Used() != 100 {
		t.Errorf("after a release: %s, %d bytes are used", got, o.memory.Used())
	}
}

package plan

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/snapshot"
)

// world is a zone as desired, as a server has it, and what of it is ours, with few names so that all of it meets.
type world struct {
	r              *rand.Rand
	want, observed content
	owned          map[rrset.Key]bool
	prune          bool
}

var worldTypes = []uint16{
	dns.TypeA, dns.TypeTXT, dns.TypeCNAME, dns.TypeMX, dns.TypeKEY, dns.TypeNS, dns.TypeDNAME,
	dns.TypeRRSIG, dns.TypeNSEC, dns.TypeDNSKEY, dns.TypeCDS, 65534,
}

func (w *world) owns(key rrset.Key) bool { return w.prune || w.owned[key] }

// change changes something and gives the owner name.
func (w *world) change() string {
	name := fmt.Sprintf("n%d.example.", w.r.IntN(12))
	key := rrset.Key{Name: name, Type: worldTypes[w.r.IntN(len(worldTypes))]}
	set := rrset.New(key, uint32(w.r.IntN(2)), fmt.Sprint(w.r.IntN(2)))
	switch w.r.IntN(8) {
	case 0, 1:
		if !rrset.IsServerMaintained(key.Type) {
			w.want[key] = set
		}
	case 2:
		delete(w.want, key)
	case 3, 4:
		w.observed[key] = set
	case 5:
		delete(w.observed, key)
	case 6:
		w.owned[key] = !w.owned[key]
	case 7: // The server gets what it lacks.
		for _, t := range worldTypes {
			delete(w.observed, rrset.Key{Name: name, Type: t})
			if s, ok := w.want[rrset.Key{Name: name, Type: t}]; ok {
				w.observed[s.Key] = s
			}
		}
	}
	return name
}

// foreign finds foreign RRsets by definition.
func (w *world) foreign() []rrset.Key {
	var keys []rrset.Key
	for key := range w.observed {
		if _, wanted := w.want[key]; !wanted && !w.owns(key) && !rrset.IsServerMaintained(key.Type) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, rrset.Key.Compare)
	return keys
}

func (w *world) check(t *testing.T, d *Difference) {
	t.Helper()
	soa := rrset.SOA{MName: fmt.Sprint(w.r.IntN(2))}
	if diff := cmp.Diff(Calculate(w.want, w.observed, w.owns, soa, rrset.SOA{MName: "0"}), d.Changes(soa, rrset.SOA{MName: "0"})); diff != "" {
		t.Fatal(diff)
	}
	want := w.foreign()
	count, some := d.Foreign()
	if diff := cmp.Diff(want, some); diff != "" || count != len(want) {
		t.Fatalf("%d foreign RRsets, want %d: %s", count, len(want), diff)
	}
	cuts := slices.DeleteFunc(slices.Clone(want), func(k rrset.Key) bool { return k.Type != dns.TypeNS && k.Type != dns.TypeDNAME })
	if diff := cmp.Diff(cuts, d.ForeignCuts(), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("foreign delegations and DNAMEs (-want +got):\n%s", diff)
	}
}

// TestDifferenceIsCalculate: after any updates it is what a comparison of everything gives.
func TestDifferenceIsCalculate(t *testing.T) {
	conflicts := 0
	for seed := range uint64(60) {
		w := &world{r: rand.New(rand.NewPCG(seed, 3)), want: content{}, observed: content{}, owned: map[rrset.Key]bool{}}
		var d Difference
		w.check(t, &d)
		for range 60 {
			var names []string
			for range 1 + w.r.IntN(4) {
				names = append(names, w.change())
			}
			switch w.r.IntN(20) {
			case 0:
				w.prune = !w.prune
				d.Reset(w.want, w.observed, w.owns)
			case 1:
				d.Reset(w.want, w.observed, w.owns)
			default:
				d.Update(slices.Values(names), w.want, w.observed, w.owns)
			}
			w.check(t, &d)
			conflicts += len(d.Changes(rrset.SOA{}, rrset.SOA{}).Conflicts)
		}
	}
	if conflicts < 1000 {
		t.Errorf("only %d conflicts came about", conflicts)
	}
}

// TestChangesAreTheCallers: what was handed out does not change with the next update, nor the other way round.
func TestChangesAreTheCallers(t *testing.T) {
	www, ftp := a("www.example.", 300, "192.0.2.1"), a("ftp.example.", 300, "192.0.2.2")
	var d Difference
	d.Reset(zone(www), zone(ftp), none)
	first := d.Changes(rrset.SOA{}, rrset.SOA{})
	first.Create[0] = ftp
	_, some := d.Foreign()
	some[0] = www.Key
	want := Changes{Create: []rrset.RRset{www}}
	if diff := cmp.Diff(want, d.Changes(rrset.SOA{}, rrset.SOA{})); diff != "" {
		t.Error(diff)
	}
	if _, some := d.Foreign(); some[0] != ftp.Key {
		t.Error(some)
	}
}

// TestForeignSample: of many foreign RRsets the first 100 are named, whatever came and went.
func TestForeignSample(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var d Difference
	observed := content{}
	for range 400 {
		s := a(fmt.Sprintf("f%03d.example.", r.IntN(300)), 300, "192.0.2.1")
		if _, ok := observed[s.Key]; ok {
			delete(observed, s.Key)
		} else {
			observed[s.Key] = s
		}
		d.Update(slices.Values([]string{s.Name}), content{}, observed, none)
		want := slices.SortedFunc(maps.Keys(observed), rrset.Key.Compare)
		count, some := d.Foreign()
		if diff := cmp.Diff(want[:min(100, len(want))], some, cmp.Transformer("", slices.Clone[[]rrset.Key])); count != len(want) || (diff != "" && len(want) > 0) {
			t.Fatalf("%d, want %d: %s", count, len(want), diff)
		}
	}
	d.Reset(content{}, observed, all)
	if count, some := d.Foreign(); count != 0 || len(some) != 0 {
		t.Error(count, some)
	}
}

// indexed is a Content of any size.
type indexed struct {
	snapshot.Map[rrset.Key, rrset.RRset]
}

func index(c content) indexed {
	e := snapshot.New[rrset.Key, rrset.RRset](func(k rrset.Key) uint64 { return snapshot.String(k.Name) }).Edit()
	for k, s := range c {
		e.Put(k, s)
	}
	return indexed{e.Map()}
}

func (c indexed) All() iter.Seq[rrset.RRset] {
	return func(yield func(rrset.RRset) bool) {
		for _, s := range c.Map.All() {
			if !yield(s) {
				return
			}
		}
	}
}

func (c indexed) At(name string) iter.Seq[rrset.RRset] {
	return func(yield func(rrset.RRset) bool) {
		for key, s := range c.Near(rrset.Key{Name: name}) {
			if key.Name == name && !yield(s) {
				return
			}
		}
	}
}

func BenchmarkDifference(b *testing.B) {
	const size = 100_000
	wanted := make(content, size)
	for i := range size {
		s := a(fmt.Sprintf("host-%d.example.com.", i), 300, "192.0.2.1")
		wanted[s.Key] = s
	}
	want := index(wanted)
	for _, mode := range []string{"in sync", "changed"} {
		e := want.Edit()
		if mode == "changed" {
			s := a("host-50000.example.com.", 300, "192.0.2.2")
			e.Put(s.Key, s)
		}
		observed := indexed{e.Map()}
		b.Run("update of one name, "+mode, func(b *testing.B) {
			b.ReportAllocs()
			var d Difference
			for b.Loop() {
				d.Update(slices.Values([]string{"host-50000.example.com."}), want, observed, none)
				d.Changes(rrset.SOA{}, rrset.SOA{})
			}
		})
	}
	for name, observed := range map[string]content{"in sync": wanted, "empty server": {}} {
		observed := index(observed)
		b.Run("reset, "+name, func(b *testing.B) {
			for b.Loop() {
				var d Difference
				d.Reset(want, observed, none)
			}
		})
	}
}

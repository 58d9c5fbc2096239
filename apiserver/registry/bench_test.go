package registry

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/informers"
	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// inStep makes one zone of n records on three servers.
func inStep(b *testing.B, n int) *world {
	b.Helper()
	w := newWorld(b)
	var lines strings.Builder
	z := fakekube.Zone("example.test", "primary", "s1", "s2")
	records := make([]v1beta1.Record, n)
	for i := range records {
		name, address := fmt.Sprintf("r%d", i), fmt.Sprintf("10.%d.%d.%d", i/62500, i/250%250, i%250)
		fmt.Fprintf(&lines, "%s A %s\n", name, address)
		records[i] = &v1beta1.ARecord{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID("ARecord-" + name), Generation: 1, Labels: map[string]string{"zone": z.Spec.ZoneName}},
			Spec:       v1beta1.ARecordSpec{RecordCommon: v1beta1.RecordCommon{Name: name}, IPv4Addresses: []string{address}},
		}
	}
	desired, err := source.Build(z, source.Objects(records), source.Options{})
	if err != nil {
		b.Fatal(err)
	}
	hashes := map[types.UID]string{}
	for _, d := range desired.Declarations.All() {
		hashes[d.Ref.UID] = source.Hash(d)
	}
	zones := bind.Zone{Name: "example.test.", Records: lines.String()}
	primary := bind.Start(b, bind.Options{Zones: []bind.Zone{zones}, Transfer: w.Key})
	w.Server("primary", v1beta1.RolePrimary, primary.Addr)
	for _, name := range []string{"s1", "s2"} {
		w.Server(name, v1beta1.RoleSecondary, bind.Start(b, bind.Options{Role: bind.Secondary, Primary: primary, Zones: []bind.Zone{zones}}).Addr)
	}
	w.Apply(z)
	for _, r := range records {
		st := r.GetRecordStatus()
		st.ObservedGeneration, st.RecordHash, st.PublishedName, st.Zone = 1, hashes[r.GetUID()], r.RecordName()+".example.test", "example.test"
		w.Apply(r)
	}
	w.Eventually("all records are in sync", func() bool {
		s := w.get("dnszone.example.test")
		return s.Status.InSync && int(s.Summary.Records) == n+2
	})
	return w
}

func BenchmarkList10000(b *testing.B) {
	w := inStep(b, 10000)
	b.ReportAllocs()
	for b.Loop() {
		if l := w.list(query{namespace: ns}); len(l.Items) < 10000 {
			b.Fatalf("%d items", len(l.Items))
		}
	}
}

func BenchmarkGet(b *testing.B) {
	w := inStep(b, 10000)
	b.ReportAllocs()
	for b.Loop() {
		w.getsInStep("r77")
	}
}

func (w *world) getsInStep(name string) {
	k, _ := v1beta1.RecordKindOf("ARecord")
	kind := subject.Kind{Kind: k.Kind, Resource: k.Resource, Singular: k.Singular}
	if s, err := w.verdicts.getVerdict(w.ctx, desired.Key{Kind: kind.Kind, Namespace: ns, Name: name}); err != nil || !s.Status.InSync {
		w.Fatal(err, s)
	}
}

// retell writes a record's status again, as the controller does after each change of it, and changes its labels, so that
// the zone has to look at it again. The event is awaited.
func (w *world) retell(r *v1beta1.ARecord, i int) {
	r.Labels["turn"] = strconv.Itoa(i)
	w.Apply(r)
	for {
		if o, _ := informers.Get[*v1beta1.ARecord](w.verdicts.informers, "ARecord", ns, r.Name); o != nil && o.Labels["turn"] == r.Labels["turn"] {
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// BenchmarkGetAfterChange100000 asks about one record of a large zone after that record has changed: everything between
// the object in the cache and the answer, three servers' answers included.
func BenchmarkGetAfterChange100000(b *testing.B) {
	w := inStep(b, 100000)
	r := w.stored("r77")
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		i++
		w.retell(r, i)
		b.StartTimer()
		w.getsInStep("r77")
	}
}

// BenchmarkViewAfterChange100000 is the desired side of the same alone.
func BenchmarkViewAfterChange100000(b *testing.B) {
	w := inStep(b, 100000)
	r := w.stored("r77")
	indexer := w.verdicts.informers.Indexer("ARecord")
	key := source.KeyOf(r)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		changed := r.DeepCopy()
		changed.Generation, changed.Spec.IPv4Addresses = int64(i), []string{fmt.Sprintf("10.99.0.%d", i%250)}
		if err := indexer.Update(changed); err != nil {
			b.Fatal(err)
		}
		w.verdicts.index.Apply(key)
		if s, ok := w.verdicts.index.Resolve(key); !ok || len(s.Zones) != 1 {
			b.Fatalf("%+v", s)
		}
	}
}

// BenchmarkZone100000 asks about a large zone in which one record has changed.
func BenchmarkZone100000(b *testing.B) {
	w := inStep(b, 100000)
	r := w.stored("r77")
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		i++
		w.retell(r, i)
		b.StartTimer()
		if s, err := w.verdicts.getVerdict(w.ctx, desired.Key{Kind: subject.ZoneKind.Kind, Namespace: ns, Name: "example.test"}); err != nil || !s.Status.InSync {
			b.Fatal(err, s)
		}
	}
}

// BenchmarkWatch100000 is a change of one record on its way to somebody who watches the whole of a large namespace.
func BenchmarkWatch100000(b *testing.B) {
	w := inStep(b, 100000)
	r := w.stored("r77")
	events, err := w.tryWatch(query{namespace: ns}, store.WatchOptions{ResourceVersion: w.list(query{namespace: ns}).ResourceVersion})
	if err != nil {
		b.Fatal(err)
	}
	defer events.Stop()
	time.Sleep(5 * time.Second) // It begins by looking at everything.
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		r.Labels["turn"] = strconv.Itoa(i)
		w.Apply(r)
		for e := range events.ResultChan() {
			if s := e.Object.(*store.Object); s.Name == "arecord.r77" && s.Labels["turn"] == r.Labels["turn"] {
				break
			}
		}
	}
}

func (w *world) stored(name string) *v1beta1.ARecord {
	r, ok := informers.Get[*v1beta1.ARecord](w.verdicts.informers, "ARecord", ns, name)
	if !ok {
		w.Fatalf("there is no %s", name)
	}
	return r.DeepCopy()
}

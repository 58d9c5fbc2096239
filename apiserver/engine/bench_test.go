package engine

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// inStep makes one zone of n records on three servers.
func inStep(b *testing.B, n int) *world {
	b.Helper()
	w := newWorld(b)
	var lines strings.Builder
	z := zone("example.test", "primary", "s1", "s2")
	records := make([]v1beta1.Record, n)
	for i := range records {
		name, address := fmt.Sprintf("r%d", i), fmt.Sprintf("10.0.%d.%d", i/250, i%250)
		fmt.Fprintf(&lines, "%s A %s\n", name, address)
		records[i] = &v1beta1.ARecord{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID("ARecord-" + name), Generation: 1, Labels: map[string]string{"zone": z.Spec.ZoneName}},
			Spec:       v1beta1.ARecordSpec{RecordCommon: v1beta1.RecordCommon{Name: name}, IPv4Addresses: []string{address}},
		}
	}
	desired, err := source.Build(z, records, source.Options{})
	if err != nil {
		b.Fatal(err)
	}
	hashes := map[types.UID]string{}
	for _, d := range desired.Declarations {
		hashes[d.Ref.UID] = source.Hash(d)
	}
	zones := bind.Zone{Name: "example.test.", Records: lines.String()}
	primary := bind.Start(b, bind.Options{Zones: []bind.Zone{zones}, Transfer: w.key})
	w.server("primary", v1beta1.RolePrimary, primary.Addr)
	for _, name := range []string{"s1", "s2"} {
		w.server(name, v1beta1.RoleSecondary, bind.Start(b, bind.Options{Role: bind.Secondary, Primary: primary, Zones: []bind.Zone{zones}}).Addr)
	}
	w.apply(z)
	for _, r := range records {
		st := r.GetRecordStatus()
		st.ObservedGeneration, st.RecordHash, st.PublishedName, st.Zone = 1, hashes[r.GetUID()], r.RecordName()+".example.test", "example.test"
		w.apply(r)
	}
	w.eventually("all records are in step", func() bool {
		s := w.get("dnszone.example.test")
		return s.Status.InSync && int(s.Summary.Records) == n+2
	})
	return w
}

func BenchmarkList10000(b *testing.B) {
	w := inStep(b, 10000)
	b.ReportAllocs()
	for b.Loop() {
		if l := w.list(Query{Namespace: ns}); len(l.Items) < 10000 {
			b.Fatalf("%d items", len(l.Items))
		}
	}
}

func BenchmarkGet(b *testing.B) {
	w := inStep(b, 10000)
	k, _ := v1beta1.RecordKindOf("ARecord")
	kind := syncstatus.Kind{Kind: k.Kind, Resource: k.Resource, Singular: k.Singular}
	b.ReportAllocs()
	for b.Loop() {
		if s, err := w.engine.Get(w.ctx, kind, ns, "r77"); err != nil || !s.Status.InSync {
			b.Fatal(err, s)
		}
	}
}

package content

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// numbered is one of many records of a zone, as admission leaves it; each generation has another address than the first.
func numbered(n, generation int) *v1beta1.ARecord {
	name := fmt.Sprintf("r%06d", n)
	a := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{
		Namespace: "dns", Name: name, UID: types.UID(name), Generation: int64(generation), Finalizers: []string{v1beta1.Finalizer},
		Labels: map[string]string{"in": "yes"}, Annotations: map[string]string{v1beta1.ZoneAnnotation: "example.test"},
	}}
	a.Spec.Name, a.Spec.IPv4Addresses = name, []string{"192.0.2.2"}
	if generation > 1 {
		a.Spec.IPv4Addresses[0] = fmt.Sprintf("192.0.2.%d", 3+generation%200)
	}
	return a
}

// BenchmarkChangeInALargeZone is what a pass over a zone of 100,000 records computes for one that changed.
func BenchmarkChangeInALargeZone(b *testing.B) {
	c := newCopies(nil)
	const records = 100_000
	for n := range records {
		c.zones.Set(numbered(n, 1))
	}
	c.declare()
	held := map[rrset.Key]rrset.RRset{}
	for set := range c.state.desired.All() {
		held[set.Key] = set
	}
	c.held[0] = held
	mirror := c.look(0)
	p := c.state.Primary(c.at(0), false, "")
	c.state.Compare(p, mirror, nil)
	i := 0
	for b.Loop() {
		i++
		c.zones.Set(numbered(i*7919%records, i+1))
		c.declare()
		c.state.Compare(p, mirror, nil)
		if changes := p.difference.Changes(c.state.desired.SOA, mirror.SOA); changes.Len() == 0 {
			b.Fatal("the change makes no difference")
		}
		if len(slices.Collect(maps.Keys(c.state.retired))) > 0 {
			b.Fatal("nothing was renamed")
		}
	}
}

// BenchmarkManyNew is what a pass computes for 10,000 new records: what is declared, what a primary lacks, and that it has it after that.
func BenchmarkManyNew(b *testing.B) {
	const records = 10_000
	for b.Loop() {
		b.StopTimer()
		c := newCopies(nil)
		c.declare()
		p := c.state.Primary(c.at(0), false, "")
		c.state.Compare(p, c.look(0), nil)
		for n := range records {
			c.zones.Set(numbered(n, 1))
		}
		b.StartTimer()
		c.declare()
		c.state.Compare(p, c.look(0), nil)
		if changes := c.state.Changes(p, p.SOA); changes.Len() < records {
			b.Fatalf("%d changes", changes.Len())
		}
		b.StopTimer()
		held := map[rrset.Key]rrset.RRset{}
		for set := range c.state.desired.All() {
			held[set.Key] = set
		}
		c.held[0] = held
		mirror := c.look(0)
		b.StartTimer()
		c.state.Compare(p, mirror, nil)
		if changes := c.state.Changes(p, p.SOA); changes.Len() != 0 {
			b.Fatalf("%d changes", changes.Len())
		}
	}
}

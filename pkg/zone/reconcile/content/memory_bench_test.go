package content

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/kube/intern"
)

// stored is a record of a zone at rest, as kube-apiserver sends it.
func stored(b *testing.B, n int) *v1beta1.ARecord {
	b.Helper()
	a := numbered(n, 1)
	at := metav1.Unix(1_800_000_000, 0)
	a.UID, a.ResourceVersion, a.CreationTimestamp = types.UID(fmt.Sprintf("7d6a9c9e-0000-4000-8000-%012d", n)), fmt.Sprint(n), at
	a.Status = status.Record(v1beta1.RecordStatus{}, status.RecordFacts{
		Zone: &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "zone"}, Spec: v1beta1.DNSZoneSpec{ZoneName: "example.com"}}, Generation: 1,
		Owner: a.Name + ".example.com", Hash: strings.Repeat("0", 54) + fmt.Sprintf("%010d", n), Addresses: "192.0.2.2",
		Accepted: status.True(status.ReconcileSucceeded, ""), Programmed: status.True(status.ReconcileSucceeded, ""),
	}, at.Time)
	text, err := json.Marshal(a)
	if err != nil {
		b.Fatal(err)
	}
	decoded := &v1beta1.ARecord{}
	if err := json.Unmarshal(text, decoded); err != nil {
		b.Fatal(err)
	}
	return decoded
}

// BenchmarkMemory is what one of 100,000 records takes in the controller, part by part: the object, the informer's index, membership, the
// desired zone, and what the primary holds and lacks.
func BenchmarkMemory(b *testing.B) {
	const records = 100_000
	for b.Loop() {
		last := heapBytes()
		report := func(part string) {
			now := heapBytes()
			b.ReportMetric((now-last)/records, part+"-B/record")
			last = now
		}
		c, pool := newCopies(b), &intern.Pool{}
		objects := make([]*v1beta1.ARecord, records)
		for n := range objects {
			objects[n] = stored(b, n)
			if _, err := pool.Transform(objects[n]); err != nil {
				b.Fatal(err)
			}
		}
		report("object")
		index := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
		for _, o := range objects {
			if err := index.Add(o); err != nil {
				b.Fatal(err)
			}
		}
		report("informer")
		for _, o := range objects {
			c.zones.Set(o)
		}
		c.declare()
		c.state.desired, c.state.builder = nil, nil
		report("membership")
		c.declare()
		report("desired")
		mirror := observe.NewMirror("example.com.", rrset.SOA{Serial: 1}, received(c.state.desired)...)
		p := c.state.Primary(c.at(0), false, "")
		c.state.Compare(p, mirror, nil)
		report("server")
		runtime.KeepAlive([]any{objects, index, c, mirror})
	}
}

// received is what a server sends of a zone: equal, and nothing in common in memory.
func received(zone *source.Zone) []rrset.RRset {
	var sets []rrset.RRset
	for set := range zone.All() {
		set.Name = strings.Clone(set.Name)
		rdata := slices.Clone(set.Rdata)
		for i := range rdata {
			rdata[i] = strings.Clone(rdata[i])
		}
		set.Rdata = rdata
		sets = append(sets, set)
	}
	return sets
}

func heapBytes() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // What has a finalizer or a weak pointer goes with the second.
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

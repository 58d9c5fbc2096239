package registry

import (
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"

	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// BenchmarkListZones1000 asks about 1,000 zones on three servers, beside the bare questions that this takes.
func BenchmarkListZones1000(b *testing.B) {
	const n = 1000
	w := newWorld(b)
	names, zones := make([]string, n), make([]bind.Zone, n)
	for i := range n {
		names[i] = fmt.Sprintf("z%d.test", i)
		zones[i] = bind.Zone{Name: names[i] + "."}
	}
	var servers []netip.AddrPort
	for i, role := range []v1beta1.ServerRole{v1beta1.RolePrimary, v1beta1.RoleSecondary, v1beta1.RoleSecondary} {
		// All of them have the zones as files: nothing is transferred between them.
		s := bind.Start(b, bind.Options{Zones: zones, Transfer: w.Key})
		w.Server(fmt.Sprintf("s%d", i), role, s.Addr)
		servers = append(servers, s.Addr)
	}
	for _, name := range names {
		w.Apply(fakekube.Zone(name, "s0", "s1", "s2"))
	}
	query := query{namespace: ns, fields: fields.OneTermEqualSelector(syncv1.FieldKind, "DNSZone")}
	w.Eventually("all zones are in sync", func() bool {
		l := w.list(query)
		for i := range l.Items {
			if !l.Items[i].Status.InSync {
				return false
			}
		}
		return len(l.Items) == n
	})
	b.Run("list", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if l := w.list(query); len(l.Items) != n {
				b.Fatalf("%d zones", len(l.Items))
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			askAll(b, servers, names)
		}
	})
}

// askAll asks every server for the SOA of every zone, as many at a time as an Observer does.
func askAll(b *testing.B, servers []netip.AddrPort, zones []string) {
	var wg sync.WaitGroup
	for _, s := range servers {
		next := make(chan string)
		for range 32 {
			wg.Go(func() {
				for zone := range next {
					if _, err := wire.Query(b.Context(), s, zone+".", dns.TypeSOA); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Go(func() {
			defer close(next)
			for _, zone := range zones {
				next <- zone
			}
		})
	}
	wg.Wait()
}

// BenchmarkWatchers1000 is a change of one record on its way to 1,000 who watch its namespace, until the last of them has
// it as JSON.
func BenchmarkWatchers1000(b *testing.B) {
	const n = 1000
	w := inStep(b, 1000)
	r := w.stored("r77")
	from := store.WatchOptions{ResourceVersion: w.list(query{namespace: ns}).ResourceVersion}
	encoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, runtime.NewScheme(), runtime.NewScheme(), json.SerializerOptions{})
	told := make(chan string, n)
	for range n {
		events, err := w.tryWatch(query{namespace: ns}, from)
		if err != nil {
			b.Fatal(err)
		}
		defer events.Stop()
		go func() {
			for e := range events.ResultChan() {
				if err := encoder.Encode(e.Object, io.Discard); err != nil {
					b.Error(err)
				}
				told <- e.Object.(*store.Object).Labels["turn"]
			}
		}()
	}
	time.Sleep(5 * time.Second) // They begin by looking at everything.
	i := 0
	for b.Loop() {
		i++
		r.Labels["turn"] = strconv.Itoa(i)
		w.Apply(r)
		for left := n; left > 0; {
			if <-told == r.Labels["turn"] {
				left--
			}
		}
	}
}

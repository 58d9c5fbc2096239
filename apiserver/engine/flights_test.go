package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// What many want is done once for all who are content with when it began, also when who wanted it first has gone, and once
// more for all others.
func TestFlights(t *testing.T) {
	var f flights[string]
	var times, enough atomic.Int32
	enough.Store(1)
	began, finish := make(chan struct{}, 10), make(chan struct{})
	work := func(ctx context.Context) {
		began <- struct{}{}
		<-finish
		if ctx.Err() != nil {
			t.Error("the work has ended with the first who wanted it")
		}
		times.Add(1)
	}
	await := func(ctx context.Context, n int32) { f.until(ctx, "x", func() bool { return times.Load() >= n }, work) }

	first, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		await(first, 1)
	}()
	<-began
	leave()
	<-gone
	if n := times.Load(); n != 0 {
		t.Fatalf("done %d times", n)
	}
	var wg sync.WaitGroup
	for i := range int32(50) {
		wg.Go(func() { await(t.Context(), 1+i%2) })
	}
	close(finish)
	wg.Wait()
	if n := times.Load(); n != 2 || len(f.under) != 0 {
		t.Errorf("done %d times, want 2; %d under way", n, len(f.under))
	}
}

// Many who ask about instances and clusters at the same time cost a server one question for each zone.
func TestQuestionsAboutFleetsAreShared(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Deadline = time.Minute })
	s := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test.", Serial: 10}}, Transfer: w.key})
	p := bind.StartProxy(t, s.Addr)
	var asked atomic.Int32
	arrived, release := make(chan struct{}, 1000), make(chan struct{})
	p.Filter(func(_ string, reply []byte) ([]byte, error) {
		if m := new(dns.Msg); m.Unpack(reply) == nil && m.Question[0].Qtype == dns.TypeSOA {
			asked.Add(1)
			arrived <- struct{}{}
			<-release
		}
		return reply, nil
	})
	w.server("primary", v1beta1.RolePrimary, p.Addr)
	w.apply(&v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c"}})
	w.apply(zone("example.test", "primary"))
	w.eventually("all is there", func() bool { return len(w.engine.candidates(everythingIn(ns))) == 3 })
	instance, _ := get[*v1beta1.Bind9Instance](w.engine.informers.instances, ns, "primary")
	cluster, _ := get[*v1beta1.Bind9Cluster](w.engine.informers.byKind["Bind9Cluster"], ns, "c")

	since := time.Now()
	first, leave := context.WithCancel(w.ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		w.engine.askFleets(first, since, nil, instance)
	}()
	<-arrived
	leave()
	<-gone
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { w.engine.askFleets(w.ctx, since, nil, instance) })
		wg.Go(func() { w.engine.askFleets(w.ctx, since, nil, cluster) })
	}
	close(release)
	wg.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if o := w.engine.fleet.zone(zoneAt{p.Addr, "example.test"}); !o.Authoritative || o.Serial != 10 {
		t.Errorf("%+v", o)
	}
	w.engine.askFleets(w.ctx, time.Now(), nil, instance, cluster)
	if n := asked.Load(); n != 2 {
		t.Errorf("asked %d times when that was too long ago", n)
	}
}

package registry

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/apiserver/informers"
	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// readersWorld has a record on a server, of which nobody has asked for the verdict yet.
type readersWorld struct {
	*world
	primary *bind.Server
	zone    *v1beta1.DNSZone
	record  *v1beta1.ARecord
}

func newReadersWorld(t *testing.T) *readersWorld {
	t.Helper()
	w := &readersWorld{world: newWorld(t, func(o *testOptions) { o.Deadline = time.Minute })}
	w.primary = bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"}}, Transfer: w.Key})
	w.Server("primary", v1beta1.RolePrimary, w.primary.Addr)
	w.zone = fakekube.Zone("example.test", "primary")
	w.record = w.Record(w.zone, "www", "192.0.2.7")
	w.Apply(w.zone)
	w.Apply(w.record)
	w.Eventually("the objects are known", func() bool {
		s, ok := w.verdicts.index.Resolve(keyOf("arecord.www"))
		return ok && len(s.Zones) == 1 && len(s.Zones[0].Servers) == 1
	})
	return w
}

// whileRead has do called during the first read of the record past the caches, once a verdict about it has been published.
func (w *readersWorld) whileRead(do func()) {
	w.Helper()
	events, err := w.verdicts.store.Watch(w.ctx, store.Scope{Namespace: ns}, everythingIn(ns), store.WatchOptions{SendInitialEvents: new(false)})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(events.Stop)
	events.Begin(nil)
	var asked atomic.Bool
	w.SetLiveReader(func(ctx context.Context, kind subject.Kind, namespace, name string) (metav1.Object, error) {
		if !asked.Swap(true) {
			select {
			case <-events.ResultChan():
				do()
			case <-time.After(5 * time.Second): // less than the API server waits for its caches
				w.Error("no verdict is published while kube-apiserver is asked for the object")
			}
		}
		return w.ReadLive(ctx, kind, namespace, name)
	})
}

// The servers are asked, and the verdict is evaluated, while kube-apiserver says which version of the object is the present one.
func TestReadWaitsOnceForAll(t *testing.T) {
	w := newReadersWorld(t)
	w.whileRead(func() {})
	if got, want := states(w.get("arecord.www")), "InSync primary-0=InSync"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A reader never gets a verdict about another version of the object than was the present one when it asked.
func TestReadIsAboutThePresentVersion(t *testing.T) {
	w := newReadersWorld(t)
	w.record.Generation, w.record.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
	w.whileRead(func() { w.Apply(w.record) }) // The caches did not have it when the reader came.
	s := w.get("arecord.www")
	if s.ObjectRef.Generation != 2 || states(s) != "Propagating primary-0=Stale" {
		t.Errorf("of generation %d: %s", s.ObjectRef.Generation, states(s))
	}
}

// What others declare counts as the caches have it when kube-apiserver has answered.
func TestReadIsAboutThePresentZone(t *testing.T) {
	w := newReadersWorld(t)
	w.whileRead(func() {
		w.zone.Generation, w.zone.Spec.TTL = 2, new(int64(77))
		w.Apply(w.zone)
		w.Eventually("the caches have the zone", func() bool {
			z, _ := informers.Get[*v1beta1.DNSZone](w.verdicts.informers, "DNSZone", ns, "example.test")
			return z.Generation == 2
		})
		w.verdicts.index.Apply(keyOf("dnszone.example.test"))
	})
	if s := w.get("arecord.www"); s.RRsets[0].TTL == nil || *s.RRsets[0].TTL != 77 {
		t.Errorf("declared is %+v", s.RRsets)
	}
}

// What others have been shown since is not taken back.
func TestReadIsNotOlderThanWhatOthersHaveSeen(t *testing.T) {
	w := newReadersWorld(t)
	w.whileRead(func() {
		fakekube.Update(t, w.primary, "example.test.", "www.example.test.", "192.0.2.9")
		if got, want := states(w.get("arecord.www")), "OutOfSync primary-0=Divergent"; got != want {
			t.Errorf("the other one gets %s, want %s", got, want)
		}
	})
	if got, want := states(w.get("arecord.www")), "OutOfSync primary-0=Divergent"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

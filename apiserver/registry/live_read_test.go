package registry

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// A server may show a change before our caches show the object that asked for it. Nobody is told that the data is wrong then,
// neither who watches the object nor who watches its zone.
func TestServersKnowBeforeOurCaches(t *testing.T) {
	w := newWorld(t, func(o *testOptions) { o.Deadline = time.Minute })
	primary := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"}}, Transfer: w.Key})
	w.Server("primary", v1beta1.RolePrimary, primary.Addr)
	var slow atomic.Bool
	var once sync.Once
	asked, applied := make(chan struct{}), make(chan struct{})
	w.SetLiveReader(func(ctx context.Context, kind subject.Kind, namespace, name string) (metav1.Object, error) {
		if slow.Load() {
			once.Do(func() { close(asked) })
			<-applied
		}
		return w.ReadLive(ctx, kind, namespace, name)
	})
	z := fakekube.Zone("example.test", "primary")
	w.Apply(z)
	r := w.Record(z, "www", "192.0.2.7")
	w.Apply(r)
	w.Eventually("the record is in sync", func() bool { return w.get("arecord.www").Status.InSync })
	record := w.watch(query{namespace: ns, fields: fields.OneTermEqualSelector("metadata.name", "arecord.www")}, store.WatchOptions{})
	both := w.watch(query{namespace: ns, fields: fields.OneTermEqualSelector("zone", "example.test")}, store.WatchOptions{})
	for _, watch := range []watching{record, both, both} {
		if _, s := watch.next(); !s.Status.InSync {
			t.Fatalf("the watch begins with %+v", s.Status)
		}
	}

	slow.Store(true)
	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.9")
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Fatal("the object is not looked up")
	}
	r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.9"}
	w.SetProgrammed(z, r)
	w.Apply(r)
	close(applied)
	for _, watch := range []watching{record, both} {
		for s := (&syncv1.SyncStatus{}); s.ObjectRef.Generation != 2 || !s.Status.InSync; {
			if _, s = watch.next(); s.Status.Phase == syncv1.PhaseOutOfSync {
				t.Fatalf("%s of generation %d is out of step: %+v", s.Name, s.ObjectRef.Generation, s.Servers)
			}
		}
	}
}

// The same holds for another object at the same name that is new: the caches do not even know of it.
func TestServersKnowANewObjectBeforeOurCaches(t *testing.T) {
	w := newWorld(t, func(o *testOptions) { o.Deadline = time.Minute })
	primary := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test.", Serial: 10, Records: "www A 192.0.2.7"}}, Transfer: w.Key})
	w.Server("primary", v1beta1.RolePrimary, primary.Addr)
	z := fakekube.Zone("example.test", "primary")
	w.Apply(z)
	w.Apply(w.Record(z, "www", "192.0.2.7"))
	w.Eventually("the record is in sync", func() bool { return w.get("arecord.www").Status.InSync })
	events := w.watch(query{namespace: ns, fields: fields.OneTermEqualSelector("metadata.name", "arecord.www")}, store.WatchOptions{})
	if _, s := events.next(); !s.Status.InSync {
		t.Fatalf("the watch begins with %+v", s.Status)
	}

	var once sync.Once
	asked, applied := make(chan struct{}), make(chan struct{})
	w.SetLiveLister(func(ctx context.Context, kind subject.Kind, namespace string) ([]metav1.Object, string, error) {
		once.Do(func() { close(asked) })
		<-applied
		return w.ReadList(ctx, kind, namespace)
	})
	fakekube.Update(t, primary, "example.test.", "www.example.test.", "192.0.2.7", "192.0.2.9")
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Fatal("other objects are not looked for")
	}
	second := w.Record(z, "www", "192.0.2.9")
	second.Name, second.UID = "www2", "www2"
	w.Apply(second)
	close(applied)
	for {
		_, s := events.next()
		if s.Status.Phase == syncv1.PhaseOutOfSync {
			t.Fatalf("out of step: %+v", s.Servers)
		}
		if len(s.RRsets[0].Rdata) == 2 && s.Status.InSync {
			break
		}
	}
}

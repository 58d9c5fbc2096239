package desired

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	framework "k8s.io/client-go/tools/cache/testing"

	"github.com/lockstep-dns/lockstep/apiserver/informers"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/test/fakekube"
)

// While the snapshot with a change is being made, nobody gets the one before it.
func TestNobodyGetsAnOutdatedSnapshot(t *testing.T) {
	c := fakekube.New(t)
	inf := c.NewInformers()
	making, proceed, hold := make(chan struct{}, 1), make(chan struct{}), false
	x := NewIndex(inf, func(instances []*v1beta1.Bind9Instance, pods []*corev1.Pod) []observe.Server {
		if hold {
			hold = false
			making <- struct{}{}
			<-proceed
		}
		return c.FindServers(instances, pods)
	})
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go inf.Run(ctx)
	c.Eventually("the caches are filled", inf.HasSynced)
	z := fakekube.Zone("example.test")
	key := ZoneKey{Namespace: z.Namespace, Name: z.Name}
	apply := func() {
		c.Apply(z)
		c.Eventually("the zone is taken over", func() bool {
			x.Apply(KeyOf(key))
			known := x.members.Zone(key)
			return known != nil && known.Generation == z.Generation
		})
	}
	apply()
	if got := x.Zone(key); got == nil || got.object.Generation != 1 {
		t.Fatalf("the first snapshot: %+v", got)
	}

	z.Generation, z.Spec.TTL = 2, new(int64(600))
	apply()
	hold = true
	snapshots := make(chan *Zone, 2)
	go func() { snapshots <- x.Zone(key) }()
	<-making
	began := time.Now()
	go func() { snapshots <- x.Zone(key) }()
	c.Eventually("the second reader waits, or has been answered", func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return len(snapshots) > 0 || x.zones[key].used.After(began)
	})
	close(proceed)
	for range 2 {
		if got := <-snapshots; got.object.Generation != 2 {
			t.Errorf("a reader gets generation %d after generation 2 was taken over", got.object.Generation)
		}
	}
}

// Whoever has a zone above thousands of others' has none of these marked and told, whatever changes of it: those on its servers and in its
// namespace are. What the others have above them is right all the same.
func TestZonesElsewhereAreNotTold(t *testing.T) {
	inf := informers.NewFrom(func(runtime.Object) cache.ListerWatcher { return framework.NewFakeControllerSource() }, nil, "home")
	x := NewIndex(inf, func([]*v1beta1.Bind9Instance, []*corev1.Pod) []observe.Server { return nil })
	put := func(o metav1.Object) {
		kind := "Bind9Instance"
		if _, is := o.(*v1beta1.DNSZone); is {
			kind = "DNSZone"
		}
		if err := inf.Indexer(kind).Update(o); err != nil {
			t.Fatal(err)
		}
	}
	for namespace, cluster := range map[string]string{"dns": "c", "evil": "own"} {
		put(&v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}, Spec: v1beta1.Bind9InstanceSpec{ClusterRef: cluster}})
	}
	apply := func(z *v1beta1.DNSZone) (told map[string]int, everywhere bool) {
		put(z)
		keys, everywhere := x.Apply(KeyOf(membership.KeyOfZone(z)))
		told = map[string]int{}
		for _, key := range keys {
			told[key.Namespace]++
		}
		return told, everywhere
	}
	const many = 100
	for i := range many {
		z := fakekube.Zone(fmt.Sprintf("z%d.example.test", i))
		apply(z)
		x.Zone(membership.KeyOfZone(z))
	}
	below := fakekube.Zone("below.example.test")
	below.Namespace, below.Spec.ClusterRef = "evil", "none"
	apply(below)

	victim := ZoneKey{Namespace: "dns", Name: "z7.example.test"}
	above := fakekube.Zone("example.test")
	above.Namespace, above.Spec.ClusterRef = "evil", "none"
	change := func(spec func(*v1beta1.DNSZone)) *v1beta1.DNSZone {
		above = above.DeepCopy()
		above.Generation++
		spec(above)
		return above
	}
	for _, step := range []struct {
		what       string
		spec       func(*v1beta1.DNSZone)
		own        bool
		everywhere bool
		parent     string
	}{
		{"a zone on no servers", func(*v1beta1.DNSZone) {}, true, false, ""},
		{"another TTL", func(z *v1beta1.DNSZone) { z.Spec.TTL = new(int64(5)) }, false, false, ""},
		{"an annotation", func(z *v1beta1.DNSZone) { z.Annotations = map[string]string{"a": "b"} }, false, false, ""},
		{"another cluster that is none", func(z *v1beta1.DNSZone) { z.Spec.ClusterRef = "nowhere" }, true, false, ""},
		{"servers of its own", func(z *v1beta1.DNSZone) { z.Spec.ClusterRef = "own" }, true, true, "evil"},
		{"another TTL on servers", func(z *v1beta1.DNSZone) { z.Spec.TTL = new(int64(6)) }, false, false, "evil"},
		{"no servers", func(z *v1beta1.DNSZone) { z.Spec.ClusterRef = "none" }, true, true, ""},
	} {
		told, everywhere := apply(change(step.spec))
		if told["dns"] != 0 || told["evil"] > 0 != step.own || everywhere != step.everywhere {
			t.Errorf("%s: told %v, everywhere: %t", step.what, told, everywhere)
		}
		parent := ""
		if at := x.Zone(victim).parent; at != nil {
			parent = at.Namespace
		}
		if parent != step.parent {
			t.Errorf("%s: the zone above is %q, want %q", step.what, parent, step.parent)
		}
	}
	if told, _ := apply(fakekube.Zone("example.test")); told["dns"] < many {
		t.Errorf("a zone on the servers of %d below: told %v", many, told)
	}
}

// A change of a zone with any number of records waits for readers after each step; who takes the objects of that zone waits for the last one.
func TestReadersComeBetweenSteps(t *testing.T) {
	c := fakekube.New(t)
	x := NewIndex(c.NewInformers(), c.FindServers)
	const objects = 500
	for i := range objects {
		x.members.SetObject(&v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: fmt.Sprint("r", i)}})
	}
	zone := fakekube.Zone("example.test")
	zone.Namespace, zone.Spec.RecordsFrom = "dns", []v1beta1.RecordSource{{}}
	key := membership.KeyOfZone(zone)
	var readers atomic.Int32
	steps := 0
	var taken []membership.Member
	var wg sync.WaitGroup
	x.mu.Lock()
	concerned := x.follow(func(yield func([]membership.Affected) bool) {
		for affected := range x.members.ZoneSteps(zone) {
			if steps++; steps == 1 {
				wg.Go(func() { taken = x.takeDirty(&zoneState{key: key}, true) })
				wg.Go(func() {
					for !x.members.IsSettled(key) {
						x.ZoneNames(KeyOf(key))
						readers.Add(1)
					}
				})
			}
			time.Sleep(2 * time.Millisecond) // Who waits longer than one has the lock next.
			yield(affected)
		}
	})
	between := readers.Load()
	x.mu.Unlock()
	wg.Wait()
	if steps < 5 || between == 0 {
		t.Errorf("readers had the lock %d times in %d steps", between, steps)
	}
	if len(taken) != objects {
		t.Errorf("%d objects were taken, want %d", len(taken), objects)
	}
	if len(concerned) != objects+1 {
		t.Errorf("%d objects are concerned, want %d and their zone, once each", len(concerned), objects)
	}
}

package desired

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
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

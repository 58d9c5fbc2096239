package zonecache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
)

var errAsked = errors.New("all kinds were asked for at the same time")

// togetherCache has the zones, and every other kind not before all of them are asked for.
type togetherCache struct {
	cache.Cache
	zones cache.Informer
	left  atomic.Int32
	all   chan struct{}
}

func (c *togetherCache) GetInformer(ctx context.Context, kind client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	if _, ok := kind.(*v1beta1.DNSZone); ok {
		return c.zones, nil
	}
	if c.left.Add(-1) == 0 {
		close(c.all)
	}
	select {
	case <-c.all:
		return nil, errAsked
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A new leader waits for the caches of all kinds at once: one after the other they took two seconds.
func TestKindsAreReadAtTheSameTime(t *testing.T) {
	zones := toolscache.NewSharedIndexInformer(cachetesting.NewFakeControllerSource(), &v1beta1.DNSZone{}, 0, nil)
	go zones.RunWithContext(t.Context())
	informers := &togetherCache{zones: zones, all: make(chan struct{})}
	informers.left.Store(int32(len(v1beta1.RecordKinds) + 2)) // the kinds of records, DNSEndpoint and Namespace
	s := NewSource(New(), informers)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer queue.ShutDown()
	if err := s.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitForSync(t.Context()); !errors.Is(err, errAsked) {
		t.Error(err)
	}
}

// emptyCache has zones, and nothing of other kinds.
type emptyCache struct {
	cache.Cache
	zones cache.Informer
}

func (c *emptyCache) GetInformer(ctx context.Context, kind client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	if _, ok := kind.(*v1beta1.DNSZone); ok {
		return c.zones, nil
	}
	none := toolscache.NewSharedIndexInformer(cachetesting.NewFakeControllerSource(), kind, 0, nil)
	go none.RunWithContext(ctx)
	return none, nil
}

// While changes of somebody's zones take their time, those of others are next; of a zone that has changed often, only the last one counts.
func TestChangesOfZonesTakeTurns(t *testing.T) {
	stored := cachetesting.NewFakeControllerSource()
	zones := toolscache.NewSharedIndexInformer(stored, &v1beta1.DNSZone{}, 0, nil)
	go zones.RunWithContext(t.Context())
	c := New()
	s := NewSource(c, &emptyCache{zones: zones})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer queue.ShutDown()
	if err := s.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	zone := func(namespace, name string, generation int64) *v1beta1.DNSZone {
		return &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: generation}}
	}
	next := func() string {
		req, _ := queue.Get()
		queue.Done(req)
		return req.String()
	}
	c.mu.Lock() // A change is under way.
	stored.Add(zone("many", "first", 1))
	waitFor(t, func() bool { return s.changed.Len() == 0 && len(zones.GetStore().ListKeys()) == 1 })
	const many = 20
	for i := range many {
		stored.Add(zone("many", fmt.Sprint("z", i), 1))
	}
	for generation := range int64(10) {
		stored.Modify(zone("many", "z0", generation+2))
	}
	stored.Add(zone("others", "one", 1))
	stored.Add(zone("others", "gone", 1))
	stored.Delete(zone("others", "gone", 1))
	stored.Add(zone("others", "last", 1))
	waitFor(t, func() bool { return s.changed.Len() == many+3 })
	c.mu.Unlock()
	got := []string{next(), next(), next(), next(), next(), next()}
	want := []string{"many/first", "many/z0", "others/one", "many/z1", "many/z2", "others/last"} // Nobody has seen the one that is gone.
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	for range many - 3 {
		if key := next(); key == "many/z0" {
			t.Error("each change of a zone counts")
		}
	}
	if got := c.Members.Zone(membership.ZoneKey{Namespace: "many", Name: "z0"}); got.Generation != 11 {
		t.Errorf("generation %d", got.Generation)
	}
	stored.Delete(zone("others", "one", 1))
	if got := next(); got != "others/one" || len(c.Members.Zones()) != many+2 {
		t.Errorf("%s, and %d zones", got, len(c.Members.Zones()))
	}
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for !done() {
		select {
		case <-t.Context().Done():
			t.Fatal("the test ends")
		case <-time.After(time.Millisecond):
		}
	}
}

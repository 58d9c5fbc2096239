package zonecache

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	toolscache "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
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

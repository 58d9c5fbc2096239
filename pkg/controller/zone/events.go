package zone

import (
	"context"
	"fmt"
	"maps"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/source"
)

// worldSource feeds a world from informers, and the queue with what follows. Passes begin when the world is complete:
// every zone is in the queue then.
type worldSource struct {
	world *world
	cache cache.Cache
	done  chan error
}

// Start implements source.Source of controller-runtime.
func (s *worldSource) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	s.world.mu.Lock()
	s.world.queue = queue
	s.world.mu.Unlock()
	go func() { s.done <- s.follow(ctx, queue) }()
	return nil
}

// WaitForSync implements source.SyncingSource of controller-runtime.
func (s *worldSource) WaitForSync(ctx context.Context) error {
	select {
	case err := <-s.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// follow begins with the zones: an object that arrives then finds its own.
func (s *worldSource) follow(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	if err := s.watch(ctx, queue, &v1beta1.DNSZone{}); err != nil {
		return err
	}
	for _, kind := range v1beta1.RecordKinds {
		if err := s.watch(ctx, queue, kind.New().(client.Object)); err != nil {
			return err
		}
	}
	return s.watch(ctx, queue, &v1alpha1.DNSEndpoint{})
}

// watch follows one kind and returns when all that exists has arrived.
func (s *worldSource) watch(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request], kind client.Object) error {
	informer, err := s.cache.GetInformer(ctx, kind)
	if err != nil {
		return fmt.Errorf("watching %T: %w", kind, err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			if initial {
				enqueue(queue, handler.LowPriority, s.world.set(o))
				return
			}
			enqueue(queue, 0, s.world.set(o))
		},
		UpdateFunc: func(_, o any) { enqueue(queue, 0, s.world.set(o)) },
		DeleteFunc: func(o any) { enqueue(queue, 0, s.world.remove(o)) },
	})
	if err != nil {
		return fmt.Errorf("watching %T: %w", kind, err)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return context.Cause(ctx)
	}
	return nil
}

// enqueue adds requests. After a start thousands of zones wait, and what changes meanwhile goes before them.
func enqueue(queue workqueue.TypedRateLimitingInterface[ctrl.Request], priority int, requests []ctrl.Request) {
	if q, ok := queue.(priorityqueue.PriorityQueue[ctrl.Request]); ok {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, requests...)
		return
	}
	for _, r := range requests {
		queue.Add(r)
	}
}

func (w *world) set(o any) []ctrl.Request {
	switch o := o.(type) {
	case *v1beta1.DNSZone:
		return w.setZone(o)
	case source.Object:
		return w.setObject(o)
	}
	return nil
}

func (w *world) remove(o any) []ctrl.Request {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	switch o := o.(type) {
	case *v1beta1.DNSZone:
		return w.removeZone(o)
	case source.Object:
		return w.removeObject(o)
	}
	return nil
}

// sameZone tells whether nothing that a user can change has: spec, labels, annotations, deletion.
func sameZone(a, b *v1beta1.DNSZone) bool {
	return a.UID == b.UID && a.Generation == b.Generation && a.DeletionTimestamp.IsZero() == b.DeletionTimestamp.IsZero() &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

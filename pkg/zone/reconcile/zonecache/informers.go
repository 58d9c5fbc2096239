package zonecache

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
)

// Source feeds a Cache from informers, and the queue with the requests that follow. Passes begin when the cache is complete:
// every zone is in the queue then.
type Source struct {
	cache     *Cache
	informers cache.Cache
	synced    chan error
	// changed are the zones of which there was an event.
	changed workqueue.TypedInterface[membership.ZoneKey]
	// Updated is called with each object that has changed, as it was and as it is, after the cache has it, unless it is a zone; nil is not.
	Updated func(before, after client.Object)
}

// NewSource returns a Source that feeds c from informers.
func NewSource(c *Cache, informers cache.Cache) *Source {
	return &Source{
		cache: c, informers: informers, synced: make(chan error, 1),
		changed: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[membership.ZoneKey]{Queue: &lanes{waiting: map[string][]membership.ZoneKey{}}}),
	}
}

// Start implements source.Source of controller-runtime.
func (s *Source) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	s.cache.SetQueue(queue)
	context.AfterFunc(ctx, s.changed.ShutDown)
	go func() { s.synced <- s.watchAll(ctx, queue) }()
	return nil
}

// WaitForSync implements source.SyncingSource of controller-runtime.
func (s *Source) WaitForSync(ctx context.Context) error {
	select {
	case err := <-s.synced:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// watchAll begins with the zones, so that an object that arrives then finds its own.
func (s *Source) watchAll(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	if err := s.watchKind(ctx, queue, &v1beta1.DNSZone{}); err != nil {
		return err
	}
	kinds := []client.Object{&v1alpha1.DNSEndpoint{}, &corev1.Namespace{}}
	for _, kind := range v1beta1.RecordKinds {
		kinds = append(kinds, kind.New().(client.Object))
	}
	var others errgroup.Group
	for _, kind := range kinds {
		others.Go(func() error { return s.watchKind(ctx, queue, kind) })
	}
	return others.Wait()
}

// watchKind follows one kind and returns when all that exists has arrived.
func (s *Source) watchKind(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request], kind client.Object) error {
	informer, err := s.informers.GetInformer(ctx, kind)
	if err != nil {
		return fmt.Errorf("watching %T: %w", kind, err)
	}
	set, remove := s.cache.Set, s.cache.Remove
	if _, ok := kind.(*v1beta1.DNSZone); ok {
		indexed, ok := informer.(toolscache.SharedIndexInformer)
		if !ok {
			return fmt.Errorf("watching %T: the informer %T has no index", kind, informer)
		}
		go s.followZones(queue, indexed.GetIndexer())
		set, remove = s.changeZone, s.changeZone
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			if initial { // So is every zone.
				requests, _ := s.cache.store(o)
				enqueueAll(queue, handler.LowPriority, requests)
				return
			}
			enqueueAll(queue, 0, set(o))
		},
		UpdateFunc: func(before, after any) {
			enqueueAll(queue, 0, set(after))
			if _, isNamespace := after.(*corev1.Namespace); s.Updated != nil && !isNamespace {
				s.Updated(before.(client.Object), after.(client.Object))
			}
		},
		DeleteFunc: func(o any) {
			if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			enqueueAll(queue, 0, remove(o))
		},
	})
	if err != nil {
		return fmt.Errorf("watching %T: %w", kind, err)
	}
	if !toolscache.WaitFor(ctx, "", registration.HasSyncedChecker()) {
		return context.Cause(ctx)
	}
	return nil
}

// changeZone has followZones look at a zone.
func (s *Source) changeZone(zone any) []ctrl.Request {
	s.changed.Add(membership.KeyOfZone(zone.(*v1beta1.DNSZone)))
	return nil
}

// followZones feeds the cache with changed zones, as they are stored by then, until the context of Start ends. A change costs as much as the
// zone selects, and somebody may have any number of records: namespaces take turns, and of many changes of a zone the last one counts.
func (s *Source) followZones(queue workqueue.TypedRateLimitingInterface[ctrl.Request], stored toolscache.Indexer) {
	for {
		key, ended := s.changed.Get()
		if ended {
			return
		}
		zone, exists, _ := stored.GetByKey(key.String()) // It has no errors.
		if exists {
			enqueueAll(queue, 0, s.cache.Set(zone))
		} else if last := s.cache.Members.Zone(key); last != nil {
			enqueueAll(queue, 0, s.cache.Remove(last))
		}
		s.changed.Done(key)
	}
}

// lanes are zones that wait, of each namespace in a lane of its own. They are the queue of a workqueue, which sees to locks.
type lanes struct {
	waiting map[string][]membership.ZoneKey
	turns   []string // namespaces whose zones wait
	zones   int
}

// Touch, Push, Len and Pop implement workqueue.Queue.
func (l *lanes) Touch(membership.ZoneKey) {}

func (l *lanes) Push(zone membership.ZoneKey) {
	if l.waiting[zone.Namespace] == nil {
		l.turns = append(l.turns, zone.Namespace)
	}
	l.waiting[zone.Namespace] = append(l.waiting[zone.Namespace], zone)
	l.zones++
}

func (l *lanes) Len() int { return l.zones }

func (l *lanes) Pop() membership.ZoneKey {
	namespace := l.turns[0]
	l.turns = l.turns[1:]
	zone, rest := l.waiting[namespace][0], l.waiting[namespace][1:]
	if delete(l.waiting, namespace); len(rest) > 0 {
		l.waiting[namespace], l.turns = rest, append(l.turns, namespace)
	}
	l.zones--
	return zone
}

// enqueueAll adds requests. After a start thousands of zones wait, and what changes meanwhile goes before them.
func enqueueAll(queue workqueue.TypedRateLimitingInterface[ctrl.Request], priority int, requests []ctrl.Request) {
	if q, ok := queue.(priorityqueue.PriorityQueue[ctrl.Request]); ok {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, requests...)
		return
	}
	for _, r := range requests {
		queue.Add(r)
	}
}

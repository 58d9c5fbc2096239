package plugin

import (
	"cmp"
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// watchEvent is a change of the objects that are followed. One field is set.
type watchEvent struct {
	// current an object that is there now, or has changed.
	current *v1alpha1.SyncStatus
	// deleted is one that is there no more, as it was last seen.
	deleted *v1alpha1.SyncStatus
	// synced comes once, after all objects that existed at first.
	synced bool
	// connectionError is why there is no connection. It is tried again, until connected.
	connectionError error
	connected       bool
}

// followStatuses sends what any of the queries selects and every change of it, until the context ends.
func (c *statusClient) followStatuses(ctx context.Context, queries ...statusQuery) <-chan watchEvent {
	events := make(chan watchEvent)
	send := func(e watchEvent) {
		select {
		case events <- e:
		case <-ctx.Done():
		}
	}
	var complete []cache.InformerSynced
	for _, q := range queries {
		complete = append(complete, c.startInformer(ctx, q, send))
	}
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), complete...) {
			send(watchEvent{synced: true})
		}
	}()
	return events
}

// startInformer follows one query. What it returns reports whether all objects that existed at first have been sent.
func (c *statusClient) startInformer(ctx context.Context, q statusQuery, send func(watchEvent)) cache.InformerSynced {
	informer := cache.NewSharedIndexInformer(c.listWatch(q, send), &v1alpha1.SyncStatus{}, 0, cache.Indexers{})
	// This one could only fail if the informer had been started, as could the next.
	_ = informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}) // listWatch reports it
	registered, _ := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { send(watchEvent{current: o.(*v1alpha1.SyncStatus)}) },
		UpdateFunc: func(old, o any) {
			if now := o.(*v1alpha1.SyncStatus); now.ResourceVersion != old.(*v1alpha1.SyncStatus).ResourceVersion {
				send(watchEvent{current: now})
			}
		},
		DeleteFunc: func(o any) {
			if unseen, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unseen.Obj
			}
			send(watchEvent{deleted: o.(*v1alpha1.SyncStatus)})
		},
	})
	go informer.RunWithContext(ctx)
	return registered.HasSynced
}

// listWatch serves an informer. It reports each connection, and why there is none: informers keep to
// themselves that nobody listens at an address.
func (c *statusClient) listWatch(q statusQuery, send func(watchEvent)) *cache.ListWatch {
	outcome := func(err error) {
		switch {
		case err == nil:
			send(watchEvent{connected: true})
		case !isExpectedWatchError(err):
			send(watchEvent{connectionError: c.explainError(err, target{})})
		}
	}
	lw := cache.NewFilteredListWatchFromClient(c.rest, statusResource, c.namespace, q.applyTo)
	list, follow := lw.ListWithContextFunc, lw.WatchFuncWithContext
	lw.ListWithContextFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		all, err := list(ctx, o)
		outcome(err)
		return all, err
	}
	lw.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		w, err := follow(ctx, o)
		outcome(err)
		return w, err
	}
	return lw
}

// isExpectedWatchError recognizes how watches end every few minutes, and the answer of a server that does not stream its first list.
func isExpectedWatchError(err error) bool {
	return errors.Is(err, context.Canceled) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsTimeout(err) ||
		apierrors.IsInvalid(err)
}

// statusKey names a SyncStatus.
type statusKey struct{ namespace, name string }

// statusSet is what is known of some objects.
type statusSet map[statusKey]*v1alpha1.SyncStatus

func keyOf(s *v1alpha1.SyncStatus) statusKey { return statusKey{s.Namespace, s.Name} }

func (w statusSet) put(s *v1alpha1.SyncStatus) { w[keyOf(s)] = s }

// applyEvent updates the set and reports whether that changed it: an object that two queries select has two events.
func (w statusSet) applyEvent(e watchEvent) (news bool) {
	switch {
	case e.current != nil:
		before := w[keyOf(e.current)]
		w.put(e.current)
		return before == nil || before.ResourceVersion != e.current.ResourceVersion
	case e.deleted != nil:
		_, news = w[keyOf(e.deleted)]
		delete(w, keyOf(e.deleted))
	}
	return news
}

// sortedItems sorts the objects by namespace and name.
func (w statusSet) sortedItems() []v1alpha1.SyncStatus {
	out := make([]v1alpha1.SyncStatus, 0, len(w))
	for _, s := range w {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b v1alpha1.SyncStatus) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func notInSync(items []v1alpha1.SyncStatus) []v1alpha1.SyncStatus {
	var out []v1alpha1.SyncStatus
	for _, s := range items {
		if !s.Status.InSync {
			out = append(out, s)
		}
	}
	return out
}

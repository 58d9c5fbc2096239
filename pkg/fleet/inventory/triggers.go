package inventory

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// Debounce is how long events are gathered into one reconciliation at least.
const Debounce = 100 * time.Millisecond

// Debounced enqueues what an object maps to after a moment, so that a thousand zones do not cause a thousand
// reconciliations.
func Debounced(find func(context.Context, client.Object) []reconcile.Request) handler.EventHandler {
	return DebouncedBy(func(reconcile.Request) time.Duration { return Debounce }, find)
}

// DebouncedBy is Debounced with a moment that depends on what is enqueued.
func DebouncedBy(moment func(reconcile.Request) time.Duration, find func(context.Context, client.Object) []reconcile.Request) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(ctx context.Context, q queue, objects ...client.Object) {
		for _, o := range objects {
			for _, request := range find(ctx, o) {
				q.AddAfter(request, moment(request))
			}
		}
	}
	return handler.Funcs{
		CreateFunc:  func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, q, e.Object) },
		UpdateFunc:  func(ctx context.Context, e event.UpdateEvent, q queue) { enqueue(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, q, e.Object) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) { enqueue(ctx, q, e.Object) },
	}
}

// RequestFor returns the request to reconcile an object.
func RequestFor(o client.Object) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}
}

// DeletionStarted passes the updates that mark an object as being deleted, and with which it waits for nothing any more.
func DeletionStarted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			v1beta1.IsGoing(e.ObjectOld) != v1beta1.IsGoing(e.ObjectNew)
	}}
}

// ChangedByOthers passes deletions, and updates of more than the status, of a reconciler's children. Their creation is the
// reconciler's own doing.
func ChangedByOthers() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectNew.GetGeneration() == 0 || e.ObjectNew.GetGeneration() != e.ObjectOld.GetGeneration()
		},
	}
}

// InstanceWakeups starts the reconciliation of instances from outside their reconciler. Its events carry a Bind9Instance
// with nothing but a namespace and a name.
type InstanceWakeups chan event.GenericEvent

// Wake has an instance reconciled soon.
func (w InstanceWakeups) Wake(namespace, name string) {
	o := &v1beta1.Bind9Instance{}
	o.Namespace, o.Name = namespace, name
	select {
	case w <- event.GenericEvent{Object: o}:
	default: // The channel is full of wake-ups already; pods and zones wake the instance, too.
	}
}

// Sooner is the shorter of two durations until a requeue, of which 0 means none.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

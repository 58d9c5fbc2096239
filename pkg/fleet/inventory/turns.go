package inventory

import (
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Turns are a reconciler in front of another one, which waits for servers: a server that is slow, or hostile, must not keep
// all workers from the objects of others. Of the objects of one namespace, and of those on the same servers, no more than so
// many are reconciled at a time. Any other one gives its worker back, and returns to the queue when it is its turn. A
// controller needs as many workers as the namespaces that wait at the same time take.
//
// Turns are also a source: the controller's queue is where objects return to.
type Turns struct {
	Reconciler reconcile.Reconciler
	// PerNamespace and PerServers are how many objects of a namespace, and of those on the same servers, are reconciled at a
	// time.
	PerNamespace, PerServers int
	// ServersOf names the servers of an object, in any form; without it only namespaces count.
	ServersOf func(ctrl.Request) string
	// IsUrgent reports whether an object comes before those that are not; without it none does.
	IsUrgent func(ctrl.Request) bool

	mu    sync.Mutex
	queue workqueue.TypedInterface[ctrl.Request]
	// busy counts the turns of namespaces and servers, those that were given to objects on their way from the queue included.
	busy  map[turn]int
	given map[ctrl.Request]turn
	// waiting are the objects of each namespace that wait, the urgent ones apart.
	waiting  map[string]*[2][]waiter
	isQueued map[ctrl.Request]bool
}

// turn is for one object of a namespace on some servers. Without servers it stands for the whole namespace.
type turn struct{ namespace, servers string }

type waiter struct {
	ctrl.Request
	turn
}

// workersPerNamespaces is how many namespaces may use up their turns before the others have to wait for workers.
const workersPerNamespaces = 16

// Workers is how many workers the controller needs.
func (t *Turns) Workers() int { return workersPerNamespaces * t.PerNamespace }

// Start implements source.Source of controller-runtime.
func (t *Turns) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = queue
	t.busy, t.given = map[turn]int{}, map[ctrl.Request]turn{}
	t.waiting, t.isQueued = map[string]*[2][]waiter{}, map[ctrl.Request]bool{}
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (t *Turns) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	own, ok := t.take(req)
	if !ok {
		return ctrl.Result{}, nil // It comes back.
	}
	defer t.end(own)
	return t.Reconciler.Reconcile(ctx, req)
}

// take takes the turn of an object. If it has to wait, it is queued.
func (t *Turns) take(req ctrl.Request) (own turn, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own, ok = t.given[req]; ok {
		delete(t.given, req)
		return own, true
	}
	own.namespace = req.Namespace
	if t.ServersOf != nil {
		own.servers = t.ServersOf(req)
	}
	if t.hasRoom(own) {
		t.count(own, 1)
		return own, true
	}
	if !t.isQueued[req] {
		t.isQueued[req] = true
		t.enqueue(waiter{req, own})
	}
	return own, false
}

// enqueue has an object wait. t.mu is held.
func (t *Turns) enqueue(w waiter) {
	queues := t.waiting[w.namespace]
	if queues == nil {
		queues = &[2][]waiter{}
		t.waiting[w.namespace] = queues
	}
	i := 1
	if t.IsUrgent != nil && t.IsUrgent(w.Request) {
		i = 0
	}
	queues[i] = append(queues[i], w)
}

// end gives a turn to the next object that waits for one like it.
func (t *Turns) end(own turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(own, -1)
	queues := t.waiting[own.namespace]
	if queues == nil {
		return
	}
	for i := range queues {
		n := slices.IndexFunc(queues[i], func(w waiter) bool { return t.hasRoom(w.turn) })
		if n < 0 {
			continue
		}
		next := queues[i][n]
		// Nearly always it is the first of what may be thousands: those before it move, not those behind.
		copy(queues[i][1:], queues[i][:n])
		queues[i][0], queues[i] = waiter{}, queues[i][1:]
		delete(t.isQueued, next.Request)
		t.given[next.Request] = next.turn
		t.count(next.turn, 1)
		t.queue.Add(next.Request)
		break
	}
	if len(queues[0])+len(queues[1]) == 0 {
		delete(t.waiting, own.namespace)
	}
}

// hasRoom reports whether a turn can be given. t.mu is held.
func (t *Turns) hasRoom(own turn) bool {
	return t.busy[turn{namespace: own.namespace}] < t.PerNamespace && (own.servers == "" || t.busy[own] < t.PerServers)
}

// count adds to the turns of the namespace and of the servers. t.mu is held.
func (t *Turns) count(own turn, n int) {
	for _, key := range []turn{{namespace: own.namespace}, own} {
		if t.busy[key] += n; t.busy[key] == 0 {
			delete(t.busy, key)
		}
		if own.servers == "" {
			return // Both are the same.
		}
	}
}

package apply

import (
	"context"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A status that somebody else has overwritten is put right after firstCorrection. Whoever goes on overwriting it gets it back each time
// twice as late, every lastCorrection in the end, until there was peace for correctionMemory.
const (
	firstCorrection  = 100 * time.Millisecond
	lastCorrection   = 30 * time.Second
	correctionMemory = 2 * time.Minute
)

// Corrections say which changes of statuses are not our own, and how soon these are put right. They are safe for concurrent use.
type Corrections struct {
	writes *ownWrites
	delays *cache.Expiring
}

// NewCorrections returns the Corrections of a process whose statuses are all written by a client of NewClient. With any other client, no
// write counts as its own.
func NewCorrections(c client.Client) *Corrections {
	corrections := &Corrections{delays: cache.NewExpiring()}
	if current, ok := c.(*currentClient); ok {
		corrections.writes = current.writes
	}
	return corrections
}

// IsOverwritten reports whether somebody else has changed an object's status. An object that is older than our last write to it does not
// count.
func (c *Corrections) IsOverwritten(before, after client.Object) bool {
	if before.GetResourceVersion() == after.GetResourceVersion() || before.GetUID() != after.GetUID() || c.writes.covers(after) {
		return false
	}
	return !equality.Semantic.DeepEqual(statusOf(before), statusOf(after))
}

// Delay is how soon an overwritten status is corrected. It doubles with each correction of the object, from firstCorrection to
// lastCorrection.
func (c *Corrections) Delay(object types.UID) time.Duration {
	delay := firstCorrection
	if last, ok := c.delays.Get(object); ok {
		delay = min(2*last.(time.Duration), lastCorrection)
	}
	c.delays.Set(object, delay, correctionMemory)
	return delay
}

// Handler has objects reconciled whose status somebody else has overwritten.
func (c *Corrections) Handler() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if c.IsOverwritten(e.ObjectOld, e.ObjectNew) {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)}, c.Delay(e.ObjectNew.GetUID()))
		}
	}}
}

// Others passes all events but those that Handler handles.
func (c *Corrections) Others() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return !c.IsOverwritten(e.ObjectOld, e.ObjectNew) }}
}

// covers reports whether our last write to an object made it what it is, or came later.
func (w *ownWrites) covers(o metav1.Object) bool {
	if w == nil {
		return false
	}
	last := w.last(o)
	return last != "" && (last == o.GetResourceVersion() || isOlder(o.GetResourceVersion(), last))
}

func statusOf(o client.Object) any {
	return reflect.ValueOf(o).Elem().FieldByName("Status").Addr().Interface()
}

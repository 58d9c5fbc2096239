package syncevent

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/controller/apply"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// writers bounds the writes that run at once; kube-apiserver's fairness does the rest.
const writers = 8

// zoneKind is the kind of the objects in the queue that are zones.
const zoneKind = "DNSZone"

// Placement tells where an object is at this moment, as the controller sees it.
type Placement struct {
	// Taken are the zones that take the object, or some of a DNSEndpoint's endpoints, by namespace and name. None takes
	// one that is being deleted.
	Taken []types.NamespacedName
	// Held are the zones that may hold data of the object, whether they take it or not.
	Held []types.NamespacedName
	// Unplaced are the indices in spec.endpoints that no zone takes.
	Unplaced []int
}

// claimed tells whether a record that a zone let go of is that zone's again or, when it was none's, anybody's.
func (p Placement) claimed(by types.NamespacedName) bool {
	if by.Name == "" {
		return len(p.Taken)+len(p.Held) > 0
	}
	return slices.Contains(p.Taken, by)
}

// Options are what a Writer works with.
type Options struct {
	// Client reads from the informers' cache and writes to kube-apiserver.
	Client client.Client
	// Recorder takes Kubernetes Events; none are made without one.
	Recorder events.EventRecorder
	// Place tells where an object is. It is asked when the object is about to be written, and by several writers at
	// once. Without it DNSEndpoints are not written, and a released record is let go whatever takes it by then.
	Place func(source.Object) Placement
	// Metrics count the writes; nil counts nothing that anybody sees.
	Metrics *Metrics
	// ZoneTimeout is how long an instance may be without a zone of its; status.ZoneTimeout when 0.
	ZoneTimeout time.Duration
	// Now is the clock; time.Now when nil.
	Now func() time.Time
}

// Writer tells records, DNSEndpoints and zones what became of them, and lets go of objects whose data has left their
// zones. It is a Listener that only takes notes: writing is done by a few workers, which read an object from the
// informers' cache, make its status from the latest outcome of its zones, and write it if it says anything new.
//
// It is a runnable of the manager, for the leader alone.
type Writer struct {
	Options
	*announcer
	out *outbox

	mu    sync.Mutex
	zones map[types.NamespacedName]*zoneNews
	// released are the zones that have let go of a DNSEndpoint, until it takes part in them again or is let go itself.
	released map[source.ObjectKey]map[types.NamespacedName]struct{}
}

// NewWriter makes a writer, which begins to write once it is started.
func NewWriter(o Options) *Writer {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	w := &Writer{
		Options: o, announcer: newAnnouncer(o.Recorder), zones: map[types.NamespacedName]*zoneNews{},
		released: map[source.ObjectKey]map[types.NamespacedName]struct{}{},
	}
	w.out = newOutbox(w.write, func(n int) { o.Metrics.queueDepth.Set(float64(n)) })
	return w
}

// Start implements manager.Runnable.
func (w *Writer) Start(ctx context.Context) error {
	w.out.run(ctx, writers)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (w *Writer) NeedLeaderElection() bool { return true }

// OnSyncCompleted implements Listener. It costs what the pass touched.
func (w *Writer) OnSyncCompleted(_ context.Context, e SyncCompleted) error {
	zone := client.ObjectKeyFromObject(e.Zone)
	all, waiting := w.remember(zone, e)
	w.Release(zone, e.Released...)
	if e.Desired != nil {
		own, rest := e.own(append(e.Touched, waiting...))
		w.joined(zone, slices.Values(own))
		w.out.post(news{zone: zone}, 0, append(own, rest...)...)
		if all {
			objects := objectsOf(e.Desired)
			w.joined(zone, slices.Values(objects))
			w.out.post(news{zone: zone}, bulk, objects...)
		}
	}
	w.out.post(news{zone: zone}, 0, source.ObjectKey{Kind: zoneKind, Namespace: zone.Namespace, Name: zone.Name})
	return nil
}

// own are those of the objects that declare something in the zone, rest the DNSEndpoints among the others. A pass also
// touches records that another zone has, or has by now: news of this zone would replace what that one has to tell them. A
// DNSEndpoint is told of all its zones at once.
func (e SyncCompleted) own(objects []source.ObjectKey) (own, rest []source.ObjectKey) {
	for _, key := range objects {
		declares := false
		for range e.Desired.Of(key) {
			declares = true
			break
		}
		switch {
		case declares:
			own = append(own, key)
		case key.Kind == source.EndpointKind:
			rest = append(rest, key)
		}
	}
	return own, rest
}

// Release says that a zone holds no data of some objects any more; the zero zone says that no zone takes or holds any.
// A record, and a DNSEndpoint that no other zone holds data of, loses our marks: a deleted one may go, any other tells
// that no zone has it.
func (w *Writer) Release(zone types.NamespacedName, objects ...source.Object) {
	if len(objects) == 0 {
		return
	}
	keys := make([]source.ObjectKey, len(objects))
	w.mu.Lock()
	for i, o := range objects {
		keys[i] = source.KeyOf(o)
		if keys[i].Kind != source.EndpointKind || zone.Name == "" {
			continue
		}
		if w.released[keys[i]] == nil {
			w.released[keys[i]] = map[types.NamespacedName]struct{}{}
		}
		w.released[keys[i]][zone] = struct{}{}
	}
	w.mu.Unlock()
	w.out.post(news{zone: zone, released: true}, 0, keys...)
}

// Forget drops what is known about a zone that is gone.
func (w *Writer) Forget(zone types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.zones, zone)
}

// remember keeps the latest outcome of a zone, and tells whether all of its objects have to be looked at: the event says
// so, it is the first one of this zone, or it is about the zone as a whole. It also tells which objects have waited for
// another outcome than the last.
func (w *Writer) remember(zone types.NamespacedName, e SyncCompleted) (all bool, waiting []source.ObjectKey) {
	// What has been handed on already need not stay in memory.
	e.Released, e.Touched, e.Changes.Create, e.Changes.UpdateOld, e.Changes.UpdateNew, e.Changes.Delete = nil, nil, nil, nil, nil, nil
	w.mu.Lock()
	defer w.mu.Unlock()
	z := w.zones[zone]
	if z == nil || z.e.Zone.UID != e.Zone.UID {
		w.zones[zone] = &zoneNews{e: e}
		return true, nil
	}
	all = e.All || z.e.Desired == nil || z.e.Problem.Reason != e.Problem.Reason
	if e.Desired != nil && (all || e.Pending != z.e.Pending || !maps.Equal(e.Unprogrammed, z.e.Unprogrammed)) {
		waiting = slices.Collect(maps.Keys(z.waiting))
		z.waiting = nil
	}
	z.e = e
	return all, waiting
}

// joined takes note that a zone has objects which it may have let go of before.
func (w *Writer) joined(zone types.NamespacedName, keys func(func(source.ObjectKey) bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.released) == 0 {
		return
	}
	for key := range keys {
		delete(w.released[key], zone)
	}
}

// latest is the last outcome of a zone; ok is false when there was none since the start.
func (w *Writer) latest(zone types.NamespacedName) (e SyncCompleted, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if z := w.zones[zone]; z != nil {
		return z.e, true
	}
	return SyncCompleted{}, false
}

// write tells one object its news.
func (w *Writer) write(ctx context.Context, key source.ObjectKey, n news) (time.Duration, error) {
	switch key.Kind {
	case zoneKind:
		return w.zone(ctx, n.zone)
	case source.EndpointKind:
		return 0, w.endpoint(ctx, key)
	default:
		return 0, w.record(ctx, key, n)
	}
}

// objectsOf lists the objects that declare anything in a zone. A DNSEndpoint may be listed more than once.
func objectsOf(z *source.Zone) []source.ObjectKey {
	keys := make([]source.ObjectKey, 0, z.Declarations.Len())
	for id := range z.Declarations.All() {
		if len(keys) == 0 || keys[len(keys)-1] != id.ObjectKey {
			keys = append(keys, id.ObjectKey)
		}
	}
	return keys
}

// applied writes a status and counts that.
func (w *Writer) applied(ctx context.Context, kind string, obj client.Object, next any) error {
	gvk := v1beta1.GroupVersion.WithKind(kind)
	if kind == source.EndpointKind {
		gvk = endpointVersion.WithKind(kind)
	}
	version, err := apply.StatusAt(ctx, w.Client, gvk, obj, obj.GetResourceVersion(), next)
	w.Metrics.wrote(kind, err)
	if err == nil {
		obj.SetResourceVersion(version)
	}
	return err
}

// unprogrammed is why an RRset of a zone is not programmed, if it is not.
func (e SyncCompleted) unprogrammed(d source.Declaration) (status.Verdict, bool) {
	if !e.Problem.Holds() {
		return e.Problem, true
	}
	v, stuck := e.Unprogrammed[d.Key]
	return v, stuck
}

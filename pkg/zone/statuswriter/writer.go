package statuswriter

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
)

// maxWriters bounds the writes that run at once. More of them write no more in a second where kube-apiserver has few cores, and whoever
// changes a single object then waits for them: the change is late in the watches, and late on the servers.
const maxWriters = 4

// Placement is where an object is at this moment, as the controller sees it.
type Placement struct {
	// Taken are the zones that take the object, or some of a DNSEndpoint's endpoints, by namespace and name. None takes
	// one that is being deleted.
	Taken []types.NamespacedName
	// Held are the zones that may hold data of the object, whether they take it or not.
	Held []types.NamespacedName
	// Unplaced are the indices in spec.endpoints that no zone takes.
	Unplaced []int
}

// isClaimed reports whether a record that a zone released is that zone's again or, when it was none's, anybody's.
func (p Placement) isClaimed(by types.NamespacedName) bool {
	if by.Name == "" {
		return len(p.Taken)+len(p.Held) > 0
	}
	return slices.Contains(p.Taken, by)
}

// Options are what a Writer works with.
type Options struct {
	// Client reads from the informers' cache and writes to kube-apiserver. Cache is that cache, which may lag behind what
	// was just written; Client if nil.
	Client client.Client
	Cache  client.Reader
	// Recorder takes Kubernetes Events; none are made without one.
	Recorder events.EventRecorder
	// Scheme has the kinds of the objects that Events are about.
	Scheme *runtime.Scheme
	// Place returns where an object is. It is called when the object is about to be written, and by several writers at
	// once. Without it DNSEndpoints are not written, and a released record loses its marks whatever takes it by then.
	Place func(source.Object) Placement
	// Metrics count the writes; nil counts nothing that anybody sees.
	Metrics *Metrics
	// ZoneTimeout is how long an instance may lack a zone assigned to it; status.ZoneTimeout when 0.
	ZoneTimeout time.Duration
	// Now is the clock; time.Now when nil.
	Now func() time.Time
}

// Writer writes the statuses of records, DNSEndpoints and zones, and releases objects whose data has left their zones. It
// is a Listener that only queues tasks: a few workers read an object from the informers' cache, compute its status from the
// latest outcome of its zones, and write it if it differs.
//
// It is a runnable of the manager, for the leader alone.
type Writer struct {
	Options
	*eventRecorder
	queue       *statusQueue
	corrections *apply.Corrections

	mu    sync.Mutex
	zones map[types.NamespacedName]*zoneOutcome
	// released are the zones that have released a DNSEndpoint, until it takes part in them again or is gone itself.
	released map[source.ObjectKey]map[types.NamespacedName]struct{}
}

// NewWriter returns a writer, which begins to write once it is started.
func NewWriter(o Options) *Writer {
	if o.Cache == nil {
		o.Cache = o.Client
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	w := &Writer{
		Options: o, eventRecorder: newEventRecorder(o.Recorder, o.Scheme), zones: map[types.NamespacedName]*zoneOutcome{},
		released: map[source.ObjectKey]map[types.NamespacedName]struct{}{}, corrections: apply.NewCorrections(o.Client),
	}
	w.queue = newStatusQueue(w.writeObject, func(n int) { o.Metrics.queueDepth.Set(float64(n)) })
	return w
}

// Start implements manager.Runnable.
func (w *Writer) Start(ctx context.Context) error {
	w.queue.run(ctx, maxWriters)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (w *Writer) NeedLeaderElection() bool { return true }

// OnSyncCompleted takes over the outcome of a pass. It costs what the pass touched.
func (w *Writer) OnSyncCompleted(e SyncCompleted) {
	w.recordDrift(e)
	w.recordNameServers(e)
	zone := client.ObjectKeyFromObject(e.Zone)
	held := w.newlyHeld(zone, e)
	all, waiting := w.storeOutcome(zone, e)
	w.Release(zone, e.Released...)
	w.queue.add(statusTask{zone: zone}, 0, held...)
	if e.Desired != nil {
		own, rest := e.ownObjects(append(e.Touched, waiting...))
		w.unmarkReleased(zone, slices.Values(own))
		w.queue.add(statusTask{zone: zone}, 0, append(own, rest...)...)
		if all {
			objects := declaringObjects(e.Desired)
			w.unmarkReleased(zone, slices.Values(objects))
			w.queue.add(statusTask{zone: zone}, lowPriority, objects...)
		}
	}
	w.queue.add(statusTask{zone: zone}, 0, source.ObjectKey{Kind: source.ZoneKind, Namespace: zone.Namespace, Name: zone.Name})
}

// newlyHeld are the records that have to wait for something else than after the outcome before.
func (w *Writer) newlyHeld(zone types.NamespacedName, e SyncCompleted) (keys []source.ObjectKey) {
	before, _ := w.latestOutcome(zone)
	for key, reason := range e.Held {
		if key.Kind != source.EndpointKind && before.Held[key] != reason {
			keys = append(keys, key)
		}
	}
	return keys
}

// ownObjects splits objects into those that declare something in the zone, and the DNSEndpoints among the others. A pass
// also touches records that another zone has, or has by now: a task of this zone would replace that of the other one. The
// status of a DNSEndpoint is about all its zones at once.
func (e SyncCompleted) ownObjects(objects []source.ObjectKey) (own, rest []source.ObjectKey) {
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

// Release records that a zone holds no data of some objects any more; the zero zone stands for objects that no zone takes
// or holds. A record, and a DNSEndpoint that no other zone holds data of, loses our marks: a deleted one may go, the status
// of any other says that no zone has it.
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
	w.queue.add(statusTask{zone: zone, released: true}, 0, keys...)
}

// Forget drops what is known about a zone that is gone.
func (w *Writer) Forget(zone types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.zones, zone)
}

// storeOutcome keeps the latest outcome of a zone. It reports whether all of its objects have to be looked at: the event
// asks for that, it is the first one of this zone, or it is about the zone as a whole. It also returns the objects that
// have waited for another outcome than the last.
func (w *Writer) storeOutcome(zone types.NamespacedName, e SyncCompleted) (all bool, waiting []source.ObjectKey) {
	// What has been handed on already need not stay in memory.
	e.Released, e.Touched, e.Changes.Create, e.Changes.UpdateOld, e.Changes.UpdateNew, e.Changes.Delete = nil, nil, nil, nil, nil, nil
	w.mu.Lock()
	defer w.mu.Unlock()
	z := w.zones[zone]
	if z == nil || z.latest.Zone.UID != e.Zone.UID {
		w.zones[zone] = &zoneOutcome{latest: e}
		return true, nil
	}
	all = e.All || z.latest.Desired == nil || z.latest.Programmed.Reason != e.Programmed.Reason
	differs := e.Pending != z.latest.Pending || !maps.Equal(e.Unprogrammed, z.latest.Unprogrammed) || e.isFollowed() != z.latest.isFollowed()
	if e.Desired != nil && (all || differs) {
		waiting = slices.Collect(maps.Keys(z.waiting))
		z.waiting = nil
	}
	if z.latest = e; z.unwritten.IsZero() {
		z.unwritten = w.Now()
	}
	return all, waiting
}

// unmarkReleased records that a zone has objects which it may have released before.
func (w *Writer) unmarkReleased(zone types.NamespacedName, keys func(func(source.ObjectKey) bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.released) == 0 {
		return
	}
	for key := range keys {
		delete(w.released[key], zone)
	}
}

// latestOutcome is the last outcome of a zone; ok is false when there was none since the start.
func (w *Writer) latestOutcome(zone types.NamespacedName) (e SyncCompleted, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if z := w.zones[zone]; z != nil {
		return z.latest, true
	}
	return SyncCompleted{}, false
}

// writeObject does the task of one object.
func (w *Writer) writeObject(ctx context.Context, key source.ObjectKey, n statusTask) (time.Duration, error) {
	switch key.Kind {
	case source.ZoneKind:
		return w.writeZone(ctx, n.zone)
	case source.EndpointKind:
		return 0, w.writeEndpoint(ctx, key)
	default:
		return 0, w.writeRecord(ctx, key, n)
	}
}

// declaringObjects are the objects that declare anything in a zone. A DNSEndpoint may be listed more than once.
func declaringObjects(z *source.Zone) []source.ObjectKey {
	keys := make([]source.ObjectKey, 0, z.Declarations.Len())
	for id := range z.Declarations.All() {
		if len(keys) == 0 || keys[len(keys)-1] != id.ObjectKey {
			keys = append(keys, id.ObjectKey)
		}
	}
	return keys
}

// writeStatus writes a status, which keeps what others have in it, and counts that.
func (w *Writer) writeStatus(ctx context.Context, kind string, obj client.Object, next any) error {
	gvk := v1beta1.GroupVersion.WithKind(kind)
	if kind == source.EndpointKind {
		gvk = v1alpha1.GroupVersion.WithKind(kind)
	}
	version, err := apply.ReplaceStatus(ctx, w.Client, gvk, obj, next)
	w.Metrics.countWrite(kind, err)
	if err == nil {
		obj.SetResourceVersion(version)
	}
	return err
}

// unprogrammedVerdict says why an RRset of a zone is not programmed; not ok when it is.
func (e SyncCompleted) unprogrammedVerdict(d source.Declaration) (status.Verdict, bool) {
	if !e.Programmed.Holds() {
		return e.Programmed, true
	}
	v, stuck := e.Unprogrammed[d.Key]
	return v, stuck
}

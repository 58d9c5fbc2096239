// Package cachehealth reports informer caches that cannot follow the Kubernetes API, and has them go on soon when they can
// again. A cache that fails to list or watch goes on answering with what it held last, and nothing else shows that. The
// controller, the API server and the webhook make their readiness depend on it.
//
// client-go's reflector resumes by itself, after waits that double up to half a minute, and with a complete list. With this package a
// cache has what it missed two seconds after kube-apiserver is back, however often it was away (TestCacheCatchesUpSoon,
// TestCacheGoesOnSoonWhereItWas): until then admission, passes and verdicts would go by what is outdated.
package cachehealth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/lenient"
	"github.com/lockstep-dns/lockstep/pkg/component"
)

// tolerance is how long a cache may fail before its component is not ready. A restart of kube-apiserver takes less, and a
// component that served nothing meanwhile would make it worse.
const tolerance = time.Minute

// unreadable counts versions of objects, in all caches of the process.
var unreadable = metrics.NewCounterVec(&metrics.CounterOpts{
	Name: "lockstep_unreadable_objects_total", Help: "Versions of objects of which a part could not be decoded, by Go type.", StabilityLevel: metrics.ALPHA,
}, []string{"type"})

// synced is 1 for each type whose cache follows the Kubernetes API, 0 while it does not.
var synced = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Name: "lockstep_cache_synced", Help: "1 if the informer cache of a type follows the Kubernetes API, 0 while it cannot.", StabilityLevel: metrics.ALPHA,
}, []string{"type"})

// watches counts the watches of each type that have begun. More than a few in an hour mean that they break off.
var watches = metrics.NewCounterVec(&metrics.CounterOpts{
	Name: "lockstep_cache_watches_total", Help: "Watches that the informer cache of a type has begun.", StabilityLevel: metrics.ALPHA,
}, []string{"type"})

// lastEvent is when the cache of each type heard of the Kubernetes API last. A watch without changes has a bookmark about every minute.
var lastEvent = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Name: "lockstep_cache_last_event_timestamp_seconds", Help: "When the informer cache of a type last got a list, an event or a bookmark, in seconds since 1970.", StabilityLevel: metrics.ALPHA,
}, []string{"type"})

func init() { component.DeclareMetrics(unreadable, synced, watches, lastEvent) }

// Monitor knows which caches fail. It is safe for concurrent use.
type Monitor struct {
	now func() time.Time

	mu      sync.Mutex
	failing map[string]failure
	// following has the caches whose last log line says that they follow; false for those whose last one says that they do not.
	following map[string]bool
	// away is when a request was last not answered at all.
	away time.Time
}

type failure struct {
	since time.Time
	err   error
}

// NewMonitor begins without caches.
func NewMonitor() *Monitor {
	return &Monitor{now: time.Now, failing: map[string]failure{}, following: map[string]bool{}}
}

// NewInformer is a cache.Options.NewInformer of controller-runtime.
func (m *Monitor) NewInformer(from cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	w := m.watch(example, from)
	informer := cache.NewSharedIndexInformer(w, example, resync, indexers)
	w.store = informer.GetStore()
	return informer
}

// Watch passes a ListerWatcher on and records its failures. example is an object of its kind.
func (m *Monitor) Watch(example runtime.Object, from cache.ListerWatcher) cache.ListerWatcher {
	return m.watch(example, from)
}

func (m *Monitor) watch(example runtime.Object, from cache.ListerWatcher) *monitored {
	name := typeOf(example)
	if kind := example.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		name = kind // metadata alone
	}
	return &monitored{Monitor: m, name: name, example: example, from: cache.ToListerWatcherWithContext(from), unsupported: watchlist.DoesClientNotSupportWatchListSemantics(from)}
}

// typeOf is the name of an object's Go type without its package.
func typeOf(o runtime.Object) string {
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndexByte(name, '.')+1:]
}

// Check is a readiness check: it fails while a cache has been failing for too long.
func (m *Monitor) Check(*http.Request) error { return m.Failing(tolerance) }

// Failing is an error while a cache has been failing for so long, or longer: it may hold what is no longer so.
func (m *Monitor) Failing(tolerance time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(m.failing)) {
		if f := m.failing[name]; m.now().Sub(f.since) >= tolerance {
			problems = append(problems, fmt.Sprintf("%s since %s: %v", name, f.since.UTC().Format(time.RFC3339), f.err))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("caches that cannot be kept current: %s", strings.Join(problems, "; "))
}

func (m *Monitor) report(name string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log(name, err)
	if err == nil {
		delete(m.failing, name)
		synced.WithLabelValues(name).Set(1)
		return
	}
	synced.WithLabelValues(name).Set(0)
	if isAway(err) {
		m.away = m.now()
	}
	f, known := m.failing[name]
	if !known {
		f.since = m.now()
	}
	f.err = err
	m.failing[name] = f
}

// log says once that a cache follows, and once that it does not. A watch that ended by itself is followed by another one.
func (m *Monitor) log(name string, err error) {
	follows, said := m.following[name]
	switch {
	case err == nil && !follows:
		klog.InfoS("cache follows the Kubernetes API", "type", name)
	case err != nil && !errors.Is(err, errEnded) && (follows || !said):
		klog.InfoS("cache does not follow the Kubernetes API", "type", name, "err", err)
	default:
		return
	}
	m.following[name] = err == nil
}

// wasAway reports whether kube-apiserver did not answer a short while ago.
func (m *Monitor) wasAway() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now().Sub(m.away) < settleTime
}

// inspect logs and counts an object of which a part could not be decoded.
func (m *Monitor) inspect(ctx context.Context, o runtime.Object) {
	object, err := meta.Accessor(o)
	if err != nil {
		return
	}
	problems := slices.DeleteFunc([]string{lenient.SpecProblem(object), lenient.StatusProblem(object)}, func(p string) bool { return p == "" })
	if len(problems) > 0 {
		unreadable.WithLabelValues(typeOf(o)).Inc()
		klog.FromContext(ctx).Info("object cannot be read completely", "type", typeOf(o), "namespace", object.GetNamespace(), "name", object.GetName(),
			"problem", strings.Join(problems, "; "))
	}
}

// monitored is a ListerWatcher that reports to a Monitor.
type monitored struct {
	*Monitor
	name        string
	from        cache.ListerWatcherWithContext
	unsupported bool
	// example is an object of the kind.
	example runtime.Object
	// store is what the informer holds; nil if it is not known.
	store cache.Store
	// given is the version of the list or the object that the informer was given last; nil before that.
	given atomic.Pointer[string]
	// cut is true after the connection of a watch was lost, expired after a watch has ended because its start is forgotten.
	cut, expired atomic.Bool
}

// IsWatchListSemanticsUnSupported is how client-go asks whether lists may be streamed.
func (w *monitored) IsWatchListSemanticsUnSupported() bool { return w.unsupported }

// List implements cache.ListerWatcher.
func (w *monitored) List(o metav1.ListOptions) (runtime.Object, error) {
	return w.ListWithContext(context.Background(), o)
}

// Watch implements cache.ListerWatcher.
func (w *monitored) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return w.WatchWithContext(context.Background(), o)
}

// ListWithContext implements cache.ListerWatcherWithContext.
func (w *monitored) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := untilAnswered(ctx, w, func() (runtime.Object, error) { return w.from.ListWithContext(ctx, o) })
	w.reportOutcome(ctx, err)
	if err != nil {
		return nil, err
	}
	w.noteHeard()
	w.noteGiven(list)
	return list, meta.EachListItem(list, func(o runtime.Object) error {
		w.inspect(ctx, o)
		return nil
	})
}

// WatchWithContext implements cache.ListerWatcherWithContext. A watch that begins with a list has succeeded when the list has
// come completely. One whose connection is lost just ends: the informer asks for another one from where it was.
func (w *monitored) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if w.cut.Swap(false) {
		waitToResume(ctx)
	}
	lists := ptr.Deref(o.SendInitialEvents, false)
	if w.expired.Swap(false) && !lists {
		return w.catchUp(ctx, o)
	}
	events, err := untilAnswered(ctx, w, func() (watch.Interface, error) { return w.from.WatchWithContext(ctx, o) })
	if isExpired(err) && !lists {
		return w.catchUp(ctx, o)
	}
	if err != nil || !lists {
		w.reportOutcome(ctx, err)
	}
	if err != nil {
		return nil, err
	}
	return w.follow(ctx, events, nil), nil
}

// errEnded says that a cache does not follow until it watches again.
var errEnded = errors.New("the watch has ended")

// follow passes on some events and then those of a watch, and reports what they say about it, and its end unless the informer has ended it.
func (w *monitored) follow(ctx context.Context, from watch.Interface, first []watch.Event) watch.Interface {
	watches.WithLabelValues(w.name).Inc()
	events := make(chan watch.Event)
	to := watch.NewProxyWatcher(events)
	began := time.Now()
	pass := func(e watch.Event) (goesOn bool) {
		if !w.accept(ctx, e) {
			return true
		}
		w.noteGiven(e.Object)
		select {
		case events <- e:
			return true
		case <-to.StopChan():
			return false
		}
	}
	go func() {
		defer close(events)
		defer from.Stop()
		for _, e := range first {
			if !pass(e) {
				return
			}
		}
		if passAll(from.ResultChan(), to.StopChan(), pass) {
			w.reportOutcome(ctx, errEnded)
			select { // An informer takes a shorter one for a failure, and pauses longer with each.
			case <-time.After(time.Until(began.Add(shortestWatch))):
			case <-to.StopChan():
			}
		}
	}()
	return to
}

// passAll passes on the events of a watch, and reports whether that has ended: false if it is stopped.
func passAll(events <-chan watch.Event, stop <-chan struct{}, pass func(watch.Event) bool) (ended bool) {
	for {
		select {
		case e, open := <-events:
			if !open {
				return true
			}
			if !pass(e) {
				return false
			}
		case <-stop:
			return false
		}
	}
}

// shortestWatch is how long a watch without events lasts at least; client-go wants more than a second.
const shortestWatch = 1100 * time.Millisecond

// noteGiven notes the version of a list or an object that the informer gets, unless it had a later one already.
func (w *monitored) noteGiven(o runtime.Object) {
	version := versionOf(o)
	for was := w.given.Load(); version != ""; was = w.given.Load() {
		if was != nil {
			if order, err := resourceversion.CompareResourceVersion(*was, version); err != nil || order >= 0 {
				return
			}
		}
		if w.given.CompareAndSwap(was, &version) {
			return
		}
	}
}

// noteHeard notes that kube-apiserver has said something of the kind.
func (w *monitored) noteHeard() { lastEvent.WithLabelValues(w.name).Set(float64(w.now().Unix())) }

// accept decides whether the informer is to have an event of its watch.
func (w *monitored) accept(ctx context.Context, e watch.Event) bool {
	if e.Type != watch.Error {
		w.noteHeard()
	}
	switch e.Type {
	case watch.Error:
		err := apierrors.FromObject(e.Object)
		w.reportOutcome(ctx, err)
		w.cut.Store(isCut(err))
		w.expired.Store(isExpired(err) && w.store != nil)
		return !isCut(err) && !w.expired.Load()
	case watch.Bookmark:
		w.reportOutcome(ctx, nil)
	default:
		w.inspect(ctx, e.Object)
	}
	return true
}

// reportOutcome records how a request ended. A request that the informer ended, or whose start is too old, is no failure.
func (w *monitored) reportOutcome(ctx context.Context, err error) {
	if ctx.Err() != nil || isExpired(err) {
		return
	}
	if apierrors.IsNotFound(err) && !w.wasAway() {
		err = nil // The kind was removed, and with it all objects.
	}
	w.report(w.name, err)
}

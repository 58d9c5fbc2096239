package engine

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

const (
	// LongestWatch bounds a watch, whatever its client asks for.
	LongestWatch = 2 * time.Hour
	// clockSlack is how much two replicas' clocks may differ.
	clockSlack = 2 * time.Second
)

// hub knows who watches what, and runs a tracker for each namespace that somebody watches.
type hub struct {
	engine *Engine
	ctx    context.Context //nolint:containedctx // ends every tracker with the process

	mu       sync.Mutex
	subs     map[*subscription]struct{}
	trackers map[string]*tracker
	// abroad holds the trackers that follow a zone of another namespace.
	abroad map[zoneKey]map[*tracker]struct{}

	// delivering makes taking a revision and queueing the event one step, so that every queue is in revision order.
	delivering sync.Mutex
	heard      heard
}

func newHub(e *Engine) *hub {
	return &hub{
		engine: e, ctx: context.Background(), subs: map[*subscription]struct{}{}, trackers: map[string]*tracker{},
		abroad: map[zoneKey]map[*tracker]struct{}{},
	}
}

func (h *hub) start(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ctx = ctx
}

// WatchOptions say how a watch begins.
type WatchOptions struct {
	// ResourceVersion to begin at; "" and "0" begin with everything there is, unless SendInitialEvents says otherwise.
	ResourceVersion string
	// SendInitialEvents begins with everything there is and marks its end by a bookmark; false begins with none of it.
	SendInitialEvents *bool
	Bookmarks         bool
}

// Watch tells what becomes of the objects that a query selects. Errors are API errors.
func (e *Engine) Watch(ctx context.Context, q Query, o WatchOptions) (watch.Interface, error) {
	q.setDefaults()
	from, foreign, synthetic, err := e.startOf(o)
	if err != nil {
		return nil, err
	}
	if err := e.ready(); err != nil {
		return nil, err
	}
	s, ctx := newSubscription(ctx, q)
	s.count = func(t watch.EventType) { e.meter.events.WithLabelValues(string(t)).Inc() }
	s.bookmarks, s.announceEnd = o.Bookmarks, o.Bookmarks && o.SendInitialEvents != nil && *o.SendInitialEvents
	s.from, s.foreign, s.synthetic = from, foreign, synthetic
	if kind, key, ok := q.named(); ok {
		if err := e.freshen(ctx, kind, key); err != nil {
			s.cancel()
			return nil, err
		}
	}
	e.hub.subscribe(ctx, s)
	return s, nil
}

// startOf finds the revision at which a watch begins, and tells whether it is another replica's. A synthetic one begins with
// everything there is instead.
func (e *Engine) startOf(o WatchOptions) (rev uint64, foreign, synthetic bool, err error) {
	anywhere := o.ResourceVersion == "" || o.ResourceVersion == "0"
	switch all := o.SendInitialEvents; {
	case all == nil && anywhere, all != nil && *all:
		return 0, false, true, e.CheckResourceVersion(o.ResourceVersion)
	case anywhere:
		return math.MaxUint64, false, false, nil // Nothing of what has been told by the time it begins.
	}
	rev, err = parseRevision(o.ResourceVersion)
	if err != nil {
		return 0, false, false, apierrors.NewBadRequest(err.Error())
	}
	if foreign = !e.revisions.mine(rev); foreign {
		// That one's watches may have been without what was seen here by then, as long as a question waits and takes.
		back := clockSlack + e.options.WatchInterval + e.options.Deadline
		rev -= min(rev, uint64(back.Microseconds())<<replicaBits) //nolint:gosec // not negative
	}
	if !e.memory.remembers(rev) || e.revisions.fromFuture(rev) {
		return 0, foreign, false, apierrors.NewResourceExpired("the resourceVersion is not one that this server remembers: list again")
	}
	return rev, foreign, false, nil
}

// subscribe starts a watch; it ends with ctx.
func (h *hub) subscribe(ctx context.Context, s *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs[s] = struct{}{}
	spaces := h.spaces(s)
	for _, ns := range spaces {
		s.initial[ns] = true
	}
	if len(spaces) == 0 {
		h.delivering.Lock()
		h.begun(s)
		h.delivering.Unlock()
	}
	for _, ns := range spaces {
		h.tracker(ns).attach(s)
	}
	go s.pump(ctx, func() { h.bookmark(s) })
	stop := h.ctx.Done()
	go func() {
		select {
		case <-ctx.Done():
		case <-stop:
			s.Stop()
		}
		h.unsubscribe(s)
	}()
}

func (h *hub) unsubscribe(s *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, s)
	for ns, t := range h.trackers {
		if t.detach(s) {
			delete(h.trackers, ns)
			for zone := range h.abroad {
				h.forget(zone, t)
			}
		}
	}
}

// followAbroad notes that a tracker follows a zone of another namespace, or does so no more.
func (h *hub) followAbroad(zone zoneKey, t *tracker, does bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !does:
		h.forget(zone, t)
	case h.trackers[t.namespace] != t: // It has ended.
	case h.abroad[zone] == nil:
		h.abroad[zone] = map[*tracker]struct{}{t: {}}
	default:
		h.abroad[zone][t] = struct{}{}
	}
}

// forget is followAbroad's end. h.mu is held.
func (h *hub) forget(zone zoneKey, t *tracker) {
	if delete(h.abroad[zone], t); len(h.abroad[zone]) == 0 {
		delete(h.abroad, zone)
	}
}

// spaces are the namespaces that a subscription covers now.
func (h *hub) spaces(s *subscription) []string {
	if s.query.Namespace != "" {
		return []string{s.query.Namespace}
	}
	all := sets.New[string]()
	for _, inf := range h.engine.informers.byKind {
		all.Insert(inf.GetIndexer().ListIndexFuncValues(cache.NamespaceIndex)...)
	}
	return sets.List(all)
}

// tracker finds or starts a namespace's tracker. h.mu is held.
func (h *hub) tracker(namespace string) *tracker {
	t := h.trackers[namespace]
	if t == nil {
		t = newTracker(h.ctx, h.engine, namespace)
		h.trackers[namespace] = t
	}
	return t
}

// poke makes trackers look at objects again; a zone stands for all that it has.
func (h *hub) poke(changed ...object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.subs) == 0 {
		return
	}
	for _, key := range changed {
		if t := h.trackers[key.Namespace]; t != nil {
			t.poke(key)
		}
		if key.Kind == syncstatus.ZoneKind.Kind {
			for t := range h.abroad[zoneKey{Namespace: key.Namespace, Name: key.Name}] {
				t.poke(key)
			}
		}
	}
	h.attachAll(changed)
}

// attachAll attaches the watches of all namespaces to those that had nothing to watch until now. h.mu is held.
func (h *hub) attachAll(changed []object) {
	for s := range h.subs {
		if s.query.Namespace != "" {
			continue
		}
		for _, key := range changed {
			if t := h.tracker(key.Namespace); !t.has(s) {
				t.attach(s)
			}
		}
	}
}

// pokeFleet makes all trackers look at pods and instances again.
func (h *hub) pokeFleet() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.trackers {
		t.pokeFleet()
	}
}

// sizes counts the watches and the namespaces that are watched.
func (h *hub) sizes() (watches, namespaces int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs), len(h.trackers)
}

// deliver tells all watchers of a namespace what has become of an object, now with its digest, or nil when it is gone.
func (h *hub) deliver(subs []*subscription, old, now *syncv1.SyncStatus, digest uint64) {
	subs = slices.DeleteFunc(subs, func(s *subscription) bool { return !s.query.matches(old) && !s.query.matches(now) })
	h.delivering.Lock()
	defer h.delivering.Unlock()
	// Where nobody is told, a new revision would make it news to watches that begin later.
	anybody, heard := len(subs) > 0, h.heard.of(cmp.Or(now, old).Namespace)
	if now != nil {
		h.engine.memory.tell(now, digest, anybody, heard)
	} else {
		ended := *old
		ended.ResourceVersion = formatRevision(h.engine.memory.tellEnd(objectOf(old), anybody, heard))
		old = &ended
	}
	if !anybody {
		return
	}
	said := share(cmp.Or(now, old))
	rev, _ := parseRevision(said.ResourceVersion) // our own
	for _, s := range subs {
		h.hear(s, rev)
		s.offer(old, now, said)
	}
}

// begun ends a watch's beginning. Of namespaces that come later it is told everything since then. h.delivering is held.
func (h *hub) begun(s *subscription) {
	now := h.engine.revisions.current()
	s.from = min(s.from, now)
	if s.announceEnd {
		h.mark(s, now, true)
	}
}

// mark queues a bookmark. h.delivering is held.
func (h *hub) mark(s *subscription, rev uint64, endOfInitial bool) {
	h.hear(s, rev)
	s.bookmark(rev, endOfInitial)
}

// hear takes down what a watch is handed. h.delivering is held.
func (h *hub) hear(s *subscription, rev uint64) {
	if s.single {
		h.engine.memory.hear(s.only, rev)
	} else {
		h.heard.note(s.query.Namespace, rev)
	}
}

// bookmark sends a bookmark, once the watch has begun everywhere.
func (h *hub) bookmark(s *subscription) {
	h.delivering.Lock()
	defer h.delivering.Unlock()
	s.mu.Lock()
	begun := len(s.initial) == 0
	s.mu.Unlock()
	if begun {
		h.mark(s, h.engine.revisions.current(), false)
	}
}

package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// Pace of a tracker.
const (
	// settle is how long a tracker lets events gather before it looks at them.
	settle = 5 * time.Millisecond
	// hold is how long a zone whose declaration has changed waits for answers from after the change.
	hold = 100 * time.Millisecond
	// perServer stretches the interval of asking when a namespace has very many servers and zones.
	perServer = time.Millisecond
)

// tracker follows one namespace for as long as somebody watches it. It asks the servers of the watched zones for their
// serial now and then, and at once when something was declared; every answer that differs is judged and delivered
// without waiting for the slower servers. One goroutine owns all fields but those under mu.
type tracker struct {
	engine    *Engine
	namespace string
	ctx       context.Context //nolint:containedctx // the tracker's own life
	cancel    context.CancelFunc
	woken     chan struct{}
	answers   chan answer

	mu      sync.Mutex
	subs    map[*subscription]struct{}
	joining map[*subscription]*joining

	zones map[string]*watched // by name of the DNSZone object
	known map[object]known
}

// joining is a watch that has not begun yet.
type joining struct {
	// until is how long to wait for servers.
	until time.Time
	// looked is set once the tracker follows what the watch is about.
	looked bool
}

// known is the state of an object that watchers have been told, or can be.
type known struct {
	status *syncv1.SyncStatus
	digest uint64
}

// watched is one zone that is being followed.
type watched struct {
	view    *view
	answers []observe.Observation
	heard   []bool // whether answers[i] is one
	asking  []bool
	members []object
	dirty   bool
	// held is until when only answers to the questions now under way count.
	held time.Time
	// told is set when what can be said without them has been.
	told bool
	// rejudge is set when somebody else saw another state than watchers were told: what the servers answer next decides.
	rejudge bool
}

type answer struct {
	zone string
	view *view
	of   observe.Server
	observe.Observation
}

func newTracker(ctx context.Context, e *Engine, namespace string) *tracker {
	ctx, cancel := context.WithCancel(ctx)
	t := &tracker{
		engine: e, namespace: namespace, ctx: ctx, cancel: cancel,
		woken: make(chan struct{}, 1), answers: make(chan answer, 64),
		subs: map[*subscription]struct{}{}, joining: map[*subscription]*joining{},
		zones: map[string]*watched{}, known: map[object]known{},
	}
	go t.run()
	return t
}

func (t *tracker) poke() {
	select {
	case t.woken <- struct{}{}:
	default:
	}
}

func (t *tracker) has(s *subscription) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, joined := t.subs[s]
	_, joining := t.joining[s]
	return joined || joining
}

func (t *tracker) attach(s *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.joining[s] = &joining{until: time.Now().Add(t.engine.options.Deadline)}
	t.poke()
}

// detach ends one watch, and the tracker when it was the last.
func (t *tracker) detach(s *subscription) (ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.subs, s)
	delete(t.joining, s)
	if ended = len(t.subs)+len(t.joining) == 0; ended {
		t.cancel()
	}
	return ended
}

func (t *tracker) run() {
	timer := time.NewTimer(t.engine.options.WatchInterval)
	defer timer.Stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-t.woken:
			t.pause()
			t.look()
		case a := <-t.answers:
			t.take(a)
		case <-timer.C:
			timer.Reset(t.askAll(t.engine.options.WatchInterval))
		}
		t.drain()
		t.judge()
		t.join()
	}
}

// pause lets a burst of events pass as one.
func (t *tracker) pause() {
	select {
	case <-time.After(settle):
	case <-t.ctx.Done():
	}
	select {
	case <-t.woken:
	default:
	}
}

func (t *tracker) drain() {
	for {
		select {
		case a := <-t.answers:
			t.take(a)
		default:
			return
		}
	}
}

// interest lists the objects that any watcher wants to know about.
func (t *tracker) interest() []object {
	t.mu.Lock()
	queries := make([]Query, 0, len(t.subs)+len(t.joining))
	for s := range t.subs {
		queries = append(queries, s.query)
	}
	for s, j := range t.joining {
		queries = append(queries, s.query)
		j.looked = true
	}
	t.mu.Unlock()
	named := map[object]bool{}
	for _, q := range queries {
		_, key, ok := q.named()
		if !ok {
			return t.engine.candidates(everythingIn(t.namespace))
		}
		if key.namespace == t.namespace && t.engine.exists(key) {
			named[key] = true
		}
	}
	return slices.Collect(maps.Keys(named))
}

func everythingIn(namespace string) Query {
	q := Query{Namespace: namespace}
	q.setDefaults()
	return q
}

// look reads what is declared now, asks the servers of zones where that has changed, and judges what needs no server.
func (t *tracker) look() {
	members, loose, present := map[string][]object{}, []object{}, map[object]bool{}
	for _, k := range t.interest() {
		present[k] = true
		if v := t.engine.viewFor(k); v != nil {
			members[v.zone.Name] = append(members[v.zone.Name], k)
		} else {
			loose = append(loose, k)
		}
	}
	for name := range t.zones {
		if members[name] == nil {
			delete(t.zones, name)
		}
	}
	for name, keys := range members {
		t.follow(name, keys)
	}
	for k := range t.known {
		if !present[k] {
			t.end(k)
		}
	}
	for _, k := range loose {
		if s := t.engine.statusOf(k, nil); s != nil {
			t.tell(k, s)
		}
	}
}

// follow takes over a zone's present view.
func (t *tracker) follow(name string, keys []object) {
	v := t.engine.index.viewOfZone(t.namespace, name)
	if v == nil {
		return
	}
	w := t.zones[name]
	if w == nil {
		w = &watched{}
		t.zones[name] = w
	}
	if !slices.Equal(w.members, keys) {
		w.members, w.dirty = keys, true
	}
	if w.view == v {
		if t.contradicted(keys) {
			w.rejudge = true
			t.ask(name, w, true)
		}
		return
	}
	declared := w.view == nil || w.view.declared != v.declared
	w.adopt(v)
	t.ask(name, w, declared)
	if declared {
		w.held, w.told = time.Now().Add(hold), false
		time.AfterFunc(hold, t.poke)
	}
}

// contradicted tells whether a list or get since has shown another state of an object than watchers were told.
func (t *tracker) contradicted(keys []object) bool {
	return slices.ContainsFunc(keys, func(k object) bool {
		was, told := t.known[k]
		return told && was.digest != t.engine.memory.digestOf(k)
	})
}

// adopt switches to a new view and keeps the answers of servers that are in both.
func (w *watched) adopt(v *view) {
	was := *w
	w.view, w.dirty = v, true
	w.answers = make([]observe.Observation, len(v.servers))
	w.heard, w.asking = make([]bool, len(v.servers)), make([]bool, len(v.servers))
	for i, s := range v.servers {
		if !s.Addr.IsValid() {
			w.heard[i] = true
			continue
		}
		for k := range was.answers {
			if o := was.view.servers[k]; o.Addr == s.Addr && o.Pod == s.Pod && was.heard[k] {
				w.answers[i], w.heard[i] = was.answers[k], true
			}
		}
	}
}

// askAll asks every server of every zone, and says when to do so again.
func (t *tracker) askAll(interval time.Duration) time.Duration {
	servers := 0
	for name, w := range t.zones {
		servers += len(w.view.servers)
		t.ask(name, w, true)
	}
	return max(interval, time.Duration(servers)*perServer)
}

// ask sends a question to each server of a zone that is not being asked already; only to those never heard when not all.
func (t *tracker) ask(name string, w *watched, all bool) {
	for i, s := range w.view.servers {
		if !s.Addr.IsValid() || w.asking[i] || w.heard[i] && !all {
			continue
		}
		w.asking[i] = true
		v := w.view
		go func() {
			ctx, cancel := context.WithTimeout(t.ctx, t.engine.options.Deadline)
			defer cancel()
			a := answer{name, v, s, t.engine.observe(ctx, v, s, 0)}
			select {
			case t.answers <- a:
			case <-t.ctx.Done():
			}
		}()
	}
}

// take notes an answer, unless the server is no longer one of the zone's.
func (t *tracker) take(a answer) {
	w := t.zones[a.zone]
	if w == nil {
		return
	}
	i := slices.IndexFunc(w.view.servers, func(s observe.Server) bool { return s.Addr == a.of.Addr && s.Pod == a.of.Pod })
	if i < 0 {
		return
	}
	if w.view == a.view {
		w.asking[i] = false
	}
	if !w.heard[i] || differs(w.answers[i], a.Observation) || w.rejudge && !slices.Contains(w.asking, true) {
		w.dirty, w.rejudge = true, false
	}
	w.answers[i], w.heard[i] = a.Observation, true
}

func differs(a, b observe.Observation) bool {
	return a.Rcode != b.Rcode || a.Authoritative != b.Authoritative || a.Serial != b.Serial || a.Mirror != b.Mirror ||
		a.Message() != b.Message()
}

// holding tells whether answers from after the last change are still to be expected soon.
func (w *watched) holding() bool {
	return slices.Contains(w.asking, true) && time.Now().Before(w.held)
}

func (w *watched) settled() bool { return !slices.Contains(w.heard, false) }

// judge computes the zones that have changed. A zone is first judged when all its servers have been heard, or when a
// new watcher has waited for them long enough. While answers to a new declaration are awaited, it is told of objects
// only that they are on their way: that they are not programmed yet needs no answer, anything else does.
func (t *tracker) judge() {
	late := t.impatient()
	for _, w := range t.zones {
		holding := w.holding()
		if !w.dirty || !w.settled() && !late || holding && w.told {
			continue
		}
		w.dirty, w.told = holding, true
		j := syncstatus.Judge(w.view.declared, w.view.servers, w.answers, time.Now())
		for _, k := range w.members {
			s := t.engine.statusOf(k, j)
			if s != nil && (!holding || s.Status.Phase == syncv1.PhasePropagating) {
				t.tell(k, s)
			}
		}
	}
}

func (t *tracker) impatient() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, j := range t.joining {
		if time.Now().After(j.until) {
			return true
		}
	}
	return false
}

// tell compares a fresh SyncStatus with what watchers know, and delivers it when it is news.
func (t *tracker) tell(k object, s *syncv1.SyncStatus) {
	digest, changed := t.engine.memory.stamp(s)
	was, had := t.known[k]
	t.known[k] = known{s, digest}
	if had && was.digest == digest && !changed {
		return
	}
	if subs := t.joined(); len(subs) > 0 {
		t.engine.hub.deliver(subs, was.status, s)
	}
}

// end tells that an object is gone, or forgets one that nobody asks about any more.
func (t *tracker) end(k object) {
	was := t.known[k]
	delete(t.known, k)
	if subs := t.joined(); len(subs) > 0 && !t.engine.exists(k) {
		t.engine.hub.deliver(subs, was.status, nil)
	}
}

func (t *tracker) joined() []*subscription {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.subs))
}

// join lets new watchers in as soon as what they want to know is known.
func (t *tracker) join() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s, j := range t.joining {
		if !j.looked || time.Now().Before(j.until) && !t.complete(s) {
			continue
		}
		delete(t.joining, s)
		t.subs[s] = struct{}{}
		t.begin(s)
	}
}

func (t *tracker) complete(s *subscription) bool {
	_, key, named := s.query.named()
	if named {
		_, ok := t.known[key]
		return ok || !t.engine.exists(key)
	}
	for _, w := range t.zones {
		if w.dirty || !w.settled() {
			return false
		}
	}
	return true
}

// begin queues a watcher's initial events.
func (t *tracker) begin(s *subscription) {
	h := t.engine.hub
	h.delivering.Lock()
	defer h.delivering.Unlock()
	keys := slices.SortedFunc(maps.Keys(t.known), compareObjects)
	for _, k := range keys {
		t.beginWith(s, t.known[k].status)
	}
	if !s.synthetic {
		for _, b := range t.engine.memory.gone(s.from) {
			if b.namespace == t.namespace && !t.engine.exists(b.object) && s.query.matches(b.last) {
				s.push(watch.Deleted, b.last)
			}
		}
	}
	if s.initialDone(t.namespace) && s.announceEnd {
		s.bookmark(t.engine.revisions.current(), true)
	}
}

func (t *tracker) beginWith(s *subscription, o *syncv1.SyncStatus) {
	rev, _ := parseRevision(o.ResourceVersion) // our own
	switch matches := s.query.matches(o); {
	case s.synthetic && matches:
		s.push(watch.Added, o)
	case s.synthetic || rev <= s.from:
	case matches && o.CreationTimestamp.After(timeOf(s.from)):
		s.push(watch.Added, o)
	case matches:
		s.push(watch.Modified, o)
	case s.query.mayHaveMatched(o) && (s.foreign || t.engine.memory.toldBy(objectOf(o), s.from)):
		s.push(watch.Deleted, o)
	}
}

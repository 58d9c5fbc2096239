package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
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
// serial now and then, and at once when something was declared or a server tells of a change; what differs is judged and delivered without waiting for
// the slower servers. Events and answers cost what they change: only objects that may have another verdict are judged
// again. One goroutine owns all fields but those under mu.
//
// tracker.go holds its life, follow.go and follow_fleet.go what it follows, ask.go the servers, listen.go what these tell
// unasked, tell.go the verdicts, pace.go when it is too soon for one, confirm.go when it may be about what is no more.
type tracker struct {
	engine    *Engine
	namespace string
	ctx       context.Context //nolint:containedctx // the tracker's own life
	cancel    context.CancelFunc
	woken     chan struct{}
	answers   chan answer
	// askedFleets are the instances and clusters whose servers have been asked; they were all asked last at fleetsAsked,
	// the largest with fleetQuestions.
	askedFleets    chan askedFleet
	fleetsAsked    time.Time
	fleetQuestions int

	mu      sync.Mutex
	subs    map[*subscription]struct{}
	joining map[*subscription]*joining
	news

	zones map[zoneKey]*watched
	// dirty are the zones of which something is to be judged again.
	dirty map[*watched]struct{}
	// due is when watchers are told of what has been put off; zero when nothing has been.
	due   time.Time
	known map[object]*known
	// confirming are the objects that are being read past the caches.
	confirming map[object]struct{}
	// everything is true when all objects of the namespace are followed, not only those that watches name.
	everything bool
}

// news is what a tracker has to look at: the objects that changed, instances and pods, or all that there is; what
// servers have told; and which objects have been looked up, and since when.
type news struct {
	touched    map[object]struct{}
	noticed    map[notice]struct{}
	confirmed  map[object]time.Time
	fleet, all bool
}

func noNews() news {
	return news{touched: map[object]struct{}{}, noticed: map[notice]struct{}{}, confirmed: map[object]time.Time{}}
}

// joining is a watch that has not begun yet.
type joining struct {
	// until is how long to wait for servers.
	until time.Time
	// looked is set once the tracker follows what the watch is about.
	looked bool
}

func newTracker(ctx context.Context, e *Engine, namespace string) *tracker {
	t := makeTracker(ctx, e, namespace)
	go t.run()
	return t
}

// makeTracker makes one that does nothing by itself.
func makeTracker(ctx context.Context, e *Engine, namespace string) *tracker {
	ctx, cancel := context.WithCancel(ctx)
	return &tracker{
		engine: e, namespace: namespace, ctx: ctx, cancel: cancel,
		woken: make(chan struct{}, 1), answers: make(chan answer, 64), askedFleets: make(chan askedFleet, 64), fleetsAsked: time.Now(),
		subs: map[*subscription]struct{}{}, joining: map[*subscription]*joining{}, news: noNews(),
		zones: map[zoneKey]*watched{}, dirty: map[*watched]struct{}{}, known: map[object]*known{}, confirming: map[object]struct{}{},
	}
}

// poke makes the tracker look at objects again.
func (t *tracker) poke(keys ...object) {
	t.mu.Lock()
	for _, k := range keys {
		t.touched[k] = struct{}{}
	}
	t.mu.Unlock()
	t.wake()
}

func (t *tracker) pokeFleet() {
	t.mu.Lock()
	t.fleet = true
	t.mu.Unlock()
	t.wake()
}

func (t *tracker) wake() {
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
	t.all = true
	t.wake()
}

// detach ends one watch, and the tracker when it was the last.
func (t *tracker) detach(s *subscription) (ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.subs, s)
	delete(t.joining, s)
	t.all = true
	if ended = len(t.subs)+len(t.joining) == 0; ended {
		t.cancel()
	}
	return ended
}

func (t *tracker) run() {
	timer := time.NewTimer(t.engine.options.WatchInterval)
	defer timer.Stop()
	defer t.engine.listeners.keep(t, nil)
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-t.woken:
			t.pause()
			t.look()
		case a := <-t.answers:
			t.take(a)
		case a := <-t.askedFleets:
			t.takeFleet(a)
		case <-timer.C:
			t.askFleets(t.engine.options.WatchInterval)
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
	if _, key, named := s.query.named(); named {
		k := t.known[key]
		return k != nil && k.isTold || !t.engine.exists(key)
	}
	if len(t.dirty) > 0 {
		return false
	}
	for _, w := range t.zones {
		if !w.settled() || len(w.unverified) > 0 {
			return false
		}
	}
	for key, k := range t.known {
		if isFleet(key.Kind) && !k.isTold {
			return false
		}
	}
	return true
}

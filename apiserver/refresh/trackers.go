package refresh

import (
	"context"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// trackers run one tracker for each namespace that somebody watches.
type trackers struct {
	refresher *Refresher
	ctx       context.Context //nolint:containedctx // ends every tracker with the process

	mu          sync.Mutex
	byNamespace map[string]*tracker
	interests   map[*Interest]struct{}
}

// Interest is what keeps verdicts up to date for one watch.
type Interest struct {
	scope    store.Scope
	trackers *trackers
	ready    chan struct{}
	// awaited are the namespaces that are not up to date yet. trackers.mu guards it.
	awaited map[string]bool
}

func (ts *trackers) start(ctx context.Context) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.ctx = ctx
}

// Track has every verdict in a scope published whenever it changes, until the Interest is stopped.
func (r *Refresher) Track(scope store.Scope) *Interest {
	ts := &r.trackers
	ts.mu.Lock()
	defer ts.mu.Unlock()
	in := &Interest{scope: scope, trackers: ts, ready: make(chan struct{}), awaited: map[string]bool{}}
	ts.interests[in] = struct{}{}
	namespaces := []string{scope.Namespace}
	if scope.Namespace == "" {
		namespaces = r.informers.Namespaces()
	}
	for _, ns := range namespaces {
		in.awaited[ns] = true
	}
	if len(namespaces) == 0 {
		close(in.ready)
	}
	for _, ns := range namespaces {
		ts.ofNamespace(ns).attach(in)
	}
	return in
}

// Ready is closed when the present verdict of every object in the scope has been published, or servers have been waited for
// long enough.
func (in *Interest) Ready() <-chan struct{} { return in.ready }

// Context ends with the process.
func (r *Refresher) Context() context.Context {
	r.trackers.mu.Lock()
	defer r.trackers.mu.Unlock()
	return r.trackers.ctx
}

// Stop ends the Interest.
func (in *Interest) Stop() {
	ts := in.trackers
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.interests, in)
	for ns, t := range ts.byNamespace {
		if t.detach(in) {
			delete(ts.byNamespace, ns)
		}
	}
}

// markReady notes that a namespace is up to date.
func (in *Interest) markReady(namespace string) {
	in.trackers.mu.Lock()
	defer in.trackers.mu.Unlock()
	if !in.awaited[namespace] {
		return
	}
	if delete(in.awaited, namespace); len(in.awaited) == 0 {
		close(in.ready)
	}
}

// ofNamespace finds or starts a namespace's tracker. ts.mu is held.
func (ts *trackers) ofNamespace(namespace string) *tracker {
	t := ts.byNamespace[namespace]
	if t == nil {
		t = newTracker(ts.ctx, ts.refresher, namespace)
		ts.byNamespace[namespace] = t
		go t.run()
	}
	return t
}

// touchObjects makes trackers look at objects again; a zone stands for all objects that belong to it.
func (ts *trackers) touchObjects(changed ...desired.Key) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.interests) == 0 {
		return
	}
	for _, key := range changed {
		if t := ts.byNamespace[key.Namespace]; t != nil {
			t.touchObject(key)
		}
		if key.Kind == subject.ZoneKind.Kind {
			for _, t := range ts.byNamespace {
				t.touchForeign(key)
			}
		}
	}
	// Who watches all namespaces watches those, too, in which there was nothing until now.
	for in := range ts.interests {
		if in.scope.Namespace != "" {
			continue
		}
		for _, key := range changed {
			ts.ofNamespace(key.Namespace).attach(in)
		}
	}
}

// serversChanged makes all trackers look at pods and instances again.
func (ts *trackers) serversChanged() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.byNamespace {
		t.addNews(func(n *news) { n.servers = true })
	}
}

func (ts *trackers) countTrackers() int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return len(ts.byNamespace)
}

// attach adds an interest to the tracker, unless it is there already.
func (t *tracker) attach(in *Interest) {
	if t.hasInterest(in) {
		return
	}
	t.addNews(func(n *news) {
		t.interests[in] = struct{}{}
		t.joining[in] = &joiningInterest{deadline: time.Now().Add(t.refresher.options.Deadline)}
		n.interests = true
	})
}

// touchForeign makes the tracker look at a zone of another namespace again if it follows that.
func (t *tracker) touchForeign(zone desired.Key) {
	t.mu.Lock()
	_, follows := t.foreign[desired.ZoneKey{Namespace: zone.Namespace, Name: zone.Name}]
	t.mu.Unlock()
	if follows {
		t.touchObject(zone)
	}
}

// detach removes an interest, and ends the tracker when it was the last.
func (t *tracker) detach(in *Interest) (ended bool) {
	if !t.hasInterest(in) {
		return false
	}
	t.addNews(func(n *news) {
		delete(t.interests, in)
		delete(t.joining, in)
		n.interests, ended = true, len(t.interests) == 0
	})
	if ended {
		t.cancel()
	}
	return ended
}

func (t *tracker) hasInterest(in *Interest) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.interests[in]
	return ok
}

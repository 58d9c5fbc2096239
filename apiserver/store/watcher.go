package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

const (
	// MaxWatchDuration bounds a watch, whatever its client asks for.
	MaxWatchDuration = 2 * time.Hour
	// bookmarkInterval is how often a watcher that wants bookmarks gets one.
	bookmarkInterval = 30 * time.Second
	// maxQueueGaps is how many gaps a queue may have, beside as many as events.
	maxQueueGaps = 64
)

// Scope is what a watch or a list covers: one object, a namespace, or everything.
type Scope struct {
	Namespace string // "" for all
	Object    Key    // zero for all
}

// Selector selects the verdicts that a client wants.
type Selector interface {
	Matches(*syncv1.SyncStatus) bool
	// MayHaveMatched reports whether an object that does not match now can have matched before.
	MayHaveMatched(*syncv1.SyncStatus) bool
}

// WatchOptions say how a watch begins.
type WatchOptions struct {
	// ResourceVersion to begin at; "" and "0" begin with everything there is, unless SendInitialEvents says otherwise.
	ResourceVersion string
	// SendInitialEvents begins with everything there is and marks its end by a bookmark; false begins with none of it.
	SendInitialEvents *bool
	Bookmarks         bool
}

// Watcher is one watch. It receives what is published from Watch on, once Begin has added what was before. Events wait in a
// queue that holds at most one for each object: a client that is too slow misses states in between, never the last one, and
// never costs more memory than one list.
type Watcher struct {
	store    *Store
	scope    Scope
	selector Selector
	// from is the revision to go on from, unless initial says to begin with everything there is.
	from      uint64
	initial   bool
	bookmarks bool
	// markEnd asks for a bookmark after the initial events.
	markEnd bool
	cancel  context.CancelFunc
	done    <-chan struct{}
	result  chan watch.Event

	mu      sync.Mutex
	queue   []*watch.Event // nil where a newer event for the same object stands further on
	pending map[Key]int    // index into queue
	// initialEnd is the index of the bookmark after the initial events; 0 if it is not in the queue.
	initialEnd int
	wake       chan struct{}
	// begun is set by Begin: nothing is handed over before.
	begun bool
	// ending says that nothing comes after the queue.
	ending bool
}

// Watch begins a watch, which ends with ctx. The caller makes sure that its scope is evaluated, and then calls Begin. Errors
// are API errors.
func (s *Store) Watch(ctx context.Context, scope Scope, selector Selector, o WatchOptions) (*Watcher, error) {
	from, initial, err := s.startOf(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, MaxWatchDuration)
	w := &Watcher{
		store: s, scope: scope, selector: selector, from: from, initial: initial, bookmarks: o.Bookmarks,
		markEnd: o.Bookmarks && o.SendInitialEvents != nil && *o.SendInitialEvents,
		cancel:  cancel, done: ctx.Done(), result: make(chan watch.Event), pending: map[Key]int{}, wake: make(chan struct{}, 1),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchers[scope] == nil {
		s.watchers[scope] = map[*Watcher]struct{}{}
	}
	s.watchers[scope][w] = struct{}{}
	go w.sendEvents(ctx)
	return w, nil
}

// startOf is the revision at which a watch begins; initial means that it begins with everything there is.
func (s *Store) startOf(o WatchOptions) (rev uint64, initial bool, err error) {
	isAny := o.ResourceVersion == "" || o.ResourceVersion == "0"
	switch all := o.SendInitialEvents; {
	case all == nil && isAny, all != nil && *all:
		return 0, true, s.CheckResourceVersion(o.ResourceVersion)
	case isAny:
		return math.MaxUint64, false, nil
	}
	rev, err = parseRevision(o.ResourceVersion)
	if err != nil {
		return 0, false, apierrors.NewBadRequest(err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if rev < s.oldest || !s.clock.isOwn(rev) || s.clock.isFuture(rev) {
		return 0, false, apierrors.NewResourceExpired("this server does not remember the resourceVersion: list again")
	}
	return rev, false, nil
}

// ResultChan implements watch.Interface.
func (w *Watcher) ResultChan() <-chan watch.Event { return w.result }

// Stop implements watch.Interface.
func (w *Watcher) Stop() { w.cancel() }

// Done is closed when the watch has ended.
func (w *Watcher) Done() <-chan struct{} { return w.done }

// Backlog are the objects of which the watch needs the verdict to begin.
func (w *Watcher) Backlog() []Key {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	var keys []Key
	for key, e := range w.store.entriesIn(w.scope) {
		if (w.initial || e.revision > w.from) && w.selector.Matches(e.status(key)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Begin has events handed over from now on, first those of the backlog, of which the verdicts have been published again.
// A watch that goes on from a revision gets what happened since in the order of revisions: wherever it breaks off, it has
// missed nothing before the last that it has.
func (w *Watcher) Begin(backlog []*syncv1.SyncStatus) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	queued := w.takeQueue()
	switch {
	case w.initial:
		w.queueInitial(backlog, queued)
	case w.from < math.MaxUint64:
		w.queueSince(backlog, queued)
	}
	w.begun = true
	if w.markEnd {
		w.queueBookmark(true)
	}
	w.wakeUp()
}

// queueInitial queues everything there is: the backlog, as far as it is current, and what was published meanwhile. w.mu and
// store.mu are held.
func (w *Watcher) queueInitial(backlog []*syncv1.SyncStatus, queued []*watch.Event) {
	for _, s := range backlog {
		if w.selector.Matches(s) && w.isCurrent(s) {
			w.enqueue(watch.Added, newObject(s))
		}
	}
	for _, e := range queued {
		if e.Type != watch.Deleted {
			w.enqueue(watch.Added, e.Object.(*Object))
		}
	}
}

// queueSince queues what has happened since a revision, as far as it is news to a client that knows what there was at that
// revision. w.mu and store.mu are held.
func (w *Watcher) queueSince(backlog []*syncv1.SyncStatus, queued []*watch.Event) {
	known, newer := w.store.knowledgeAt(w.from), map[Key]bool{}
	for _, e := range queued {
		key := KeyOf(e.Object.(*Object).SyncStatus)
		newer[key] = true
		e.Type = w.eventSince(known, key, e.Type)
	}
	queued = slices.DeleteFunc(queued, func(e *watch.Event) bool { return e.Type == "" })
	add := func(kind watch.EventType, s *syncv1.SyncStatus) {
		if kind = w.eventSince(known, KeyOf(s), kind); kind != "" && !newer[KeyOf(s)] {
			queued = append(queued, &watch.Event{Type: kind, Object: newObject(s)})
		}
	}
	for _, s := range backlog {
		if w.isCurrent(s) && w.selector.Matches(s) {
			add(watch.Modified, s)
		}
	}
	for key, e := range w.store.entriesIn(w.scope) {
		if e.revision <= w.from {
			continue
		}
		if last := e.status(key); !w.selector.Matches(last) && w.selector.MayHaveMatched(last) {
			add(watch.Deleted, last)
		}
	}
	for t := range w.store.deletedSince(w.from) {
		last := t.status(t.Key)
		if _, exists := w.store.namespaces[t.Namespace][t.Key]; exists || !t.published && !isInexact(w.from) || !w.scope.coversObject(t.Key) {
			continue
		}
		if w.selector.Matches(last) || w.selector.MayHaveMatched(last) {
			add(watch.Deleted, last)
		}
	}
	slices.SortStableFunc(queued, func(a, b *watch.Event) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
	for _, e := range queued {
		w.enqueue(e.Type, e.Object.(*Object))
	}
}

// eventSince is an event as what it is to a client that knows what there was at the revision to go on from; "" if it is none. Whoever
// existed then and has changed more often than is remembered is taken for known; from an inexact revision, everything is. store.mu is held.
func (w *Watcher) eventSince(known knowledge, key Key, kind watch.EventType) watch.EventType {
	o, existed := known.of(key)
	switch isKnown := isInexact(w.from) || existed && (o == nil || w.selector.Matches(o.status(key))); {
	case kind == watch.Deleted && !isKnown:
		return ""
	case kind == watch.Deleted:
		return kind
	case isKnown:
		return watch.Modified
	}
	return watch.Added
}

func (s Scope) coversObject(key Key) bool {
	return (s.Object == Key{} || s.Object == key) && (s.Namespace == "" || s.Namespace == key.Namespace)
}

func revisionOf(e *watch.Event) uint64 {
	rev, _ := parseRevision(e.Object.(*Object).ResourceVersion) // our own
	return rev
}

// isCurrent reports whether a verdict is the one that was published last. store.mu is held.
func (w *Watcher) isCurrent(s *syncv1.SyncStatus) bool {
	e := w.store.namespaces[s.Namespace][KeyOf(s)]
	return e != nil && formatRevision(e.revision) == s.ResourceVersion
}

// sendEvents hands events over until the context ends.
func (w *Watcher) sendEvents(ctx context.Context) {
	defer w.store.forgetWatcher(w)
	defer close(w.result)
	defer w.cancel()
	ticker := time.NewTicker(bookmarkInterval)
	defer ticker.Stop()
	for {
		events, last := w.takeEvents()
		for _, e := range events {
			select {
			case w.result <- *e:
				w.store.onEvent(e.Type)
			case <-ctx.Done():
				return
			}
		}
		if last {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-ticker.C:
			w.Bookmark()
		}
	}
}

func (s *Store) forgetWatcher(w *Watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.watchers[w.scope], w); len(s.watchers[w.scope]) == 0 {
		delete(s.watchers, w.scope)
	}
}

// takeEvents empties the queue; last means that nothing will follow.
func (w *Watcher) takeEvents() (events []*watch.Event, last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begun {
		return nil, w.ending
	}
	return w.takeQueue(), w.ending
}

// takeQueue empties the queue. w.mu is held.
func (w *Watcher) takeQueue() []*watch.Event {
	events := slices.DeleteFunc(w.queue, func(e *watch.Event) bool { return e == nil })
	w.queue, w.initialEnd = nil, 0
	clear(w.pending)
	return events
}

// eventFor is what a change of an object is to this watch; "" when it is nothing.
func (w *Watcher) eventFor(was, is *syncv1.SyncStatus) watch.EventType {
	matched, matches := was != nil && w.selector.Matches(was), is != nil && w.selector.Matches(is)
	switch {
	case matched && matches:
		return watch.Modified
	case matches:
		return watch.Added
	case matched:
		return watch.Deleted
	}
	return ""
}

// pushEvent queues one event.
func (w *Watcher) pushEvent(kind watch.EventType, o *Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enqueue(kind, o)
	w.wakeUp()
}

// enqueue replaces an event of the same object that still waits, and is what both together are to the client. w.mu is held.
func (w *Watcher) enqueue(kind watch.EventType, o *Object) {
	if w.ending {
		return
	}
	key := KeyOf(o.SyncStatus)
	if i, waiting := w.pending[key]; waiting && kind != watch.Bookmark {
		was := w.queue[i].Type
		if i < w.initialEnd && kind != watch.Deleted { // The initial events are all that there is.
			w.queue[i] = &watch.Event{Type: was, Object: o}
			return
		}
		w.queue[i] = nil
		switch {
		case was == watch.Added && kind == watch.Deleted: // The client never knew of it.
			delete(w.pending, key)
			return
		case was == watch.Added:
			kind = watch.Added
		case kind == watch.Added: // It still knows what ended, or matched no more.
			kind = watch.Modified
		}
	}
	if len(w.queue) > 2*len(w.pending)+maxQueueGaps {
		w.closeGaps()
	}
	w.queue = append(w.queue, &watch.Event{Type: kind, Object: o})
	if kind != watch.Bookmark {
		w.pending[key] = len(w.queue) - 1
	}
}

// closeGaps removes what newer events have left in the queue of a client that takes nothing. w.mu is held.
func (w *Watcher) closeGaps() {
	for _, e := range w.queue[:w.initialEnd] {
		if e == nil {
			w.initialEnd--
		}
	}
	w.queue = slices.DeleteFunc(w.queue, func(e *watch.Event) bool { return e == nil })
	for i, e := range w.queue {
		if e.Type != watch.Bookmark {
			w.pending[KeyOf(e.Object.(*Object).SyncStatus)] = i
		}
	}
}

func (w *Watcher) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Bookmark queues a bookmark, if the watch takes any and has begun.
func (w *Watcher) Bookmark() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun && w.bookmarks {
		w.queueBookmark(false)
		w.wakeUp()
	}
}

// queueBookmark queues the present revision: everything up to it is in the queue or has been sent. store.mu and w.mu are
// held.
func (w *Watcher) queueBookmark(endOfInitial bool) {
	b := emptyStatus()
	b.ResourceVersion = formatRevision(w.store.clock.currentRevision())
	if endOfInitial {
		b.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	if w.enqueue(watch.Bookmark, newObject(b)); endOfInitial {
		w.initialEnd = max(0, len(w.queue)-1)
	}
}

// endAfterQueue ends the watch once what is queued has been handed over.
func (w *Watcher) endAfterQueue() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ending = true
	w.wakeUp()
}

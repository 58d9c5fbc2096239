package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// bookmarkEvery is how often a watcher that wants bookmarks gets one.
const bookmarkEvery = 30 * time.Second

// gaps is how many a queue may have, beside as many as events.
const gaps = 64

// subscription is one watch. Events wait in a queue that holds at most one for each object: a watcher that is too slow
// misses states in between, never the last one, and never costs more memory than one list.
type subscription struct {
	query Query
	// single is true when the query names one object, only.
	single    bool
	only      object
	bookmarks bool
	// from is the revision to start at; synthetic says to begin with everything there is instead.
	from      uint64
	synthetic bool
	// foreign says that from is another replica's revision.
	foreign bool
	// announceEnd asks for a bookmark after the initial events.
	announceEnd bool

	// count is told of each event that is handed over.
	count  func(watch.EventType)
	cancel context.CancelFunc
	result chan watch.Event

	mu      sync.Mutex
	queue   []*watch.Event // nil where a newer event for the same object stands further on
	pending map[object]int // index into queue
	wake    chan struct{}
	// initial holds the namespaces whose initial events are still to come.
	initial map[string]bool
	// ending says that nothing comes after the queue.
	ending bool
	// begun is set once the first events were handed over.
	begun bool
}

// newSubscription prepares a watch; it ends with the context that it gives.
func newSubscription(ctx context.Context, q Query) (*subscription, context.Context) {
	ctx, cancel := context.WithTimeout(ctx, LongestWatch)
	_, only, single := q.named()
	return &subscription{
		query: q, single: single, only: only, cancel: cancel, result: make(chan watch.Event), pending: map[object]int{}, wake: make(chan struct{}, 1),
		initial: map[string]bool{},
	}, ctx
}

// ResultChan implements watch.Interface.
func (s *subscription) ResultChan() <-chan watch.Event { return s.result }

// Stop implements watch.Interface.
func (s *subscription) Stop() { s.cancel() }

// pump hands events over until the context ends.
func (s *subscription) pump(ctx context.Context, bookmark func()) {
	defer close(s.result)
	ticker := time.NewTicker(bookmarkEvery)
	defer ticker.Stop()
	for {
		events, last := s.take()
		for _, e := range events {
			select {
			case s.result <- *e:
				s.count(e.Type)
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
		case <-s.wake:
		case <-ticker.C:
			if s.bookmarks {
				bookmark()
			}
		}
	}
}

// take gives what is queued, and whether nothing will follow it. A watch that goes on from a revision is handed what
// happened since in the order of revisions, and nothing before all is known: wherever it breaks off, it has missed nothing
// before the last that it has.
func (s *subscription) take() (queued []*watch.Event, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if goesOn := !s.synthetic && len(s.initial) > 0; goesOn {
		return nil, s.ending
	}
	events := make([]*watch.Event, 0, len(s.pending))
	for _, e := range s.queue {
		if e != nil {
			events = append(events, e)
		}
	}
	s.queue = nil
	clear(s.pending)
	if !s.synthetic && !s.begun {
		slices.SortStableFunc(events, func(a, b *watch.Event) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
	}
	s.begun = true
	return events, s.ending
}

func revisionOf(e *watch.Event) uint64 {
	rev, _ := parseRevision(e.Object.(*shared).ResourceVersion) // our own
	return rev
}

// begins tells whether a namespace's initial events are still to come.
func (s *subscription) begins(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initial[namespace]
}

// offer queues what has become of an object: old is the state before, nil when there was none; now is nil when it is
// gone, and then old carries the revision of its end. said is now, or else old, for all who watch.
func (s *subscription) offer(old, now *syncv1.SyncStatus, said *shared) {
	was, is := s.query.matches(old), s.query.matches(now)
	switch {
	case was && is:
		s.push(watch.Modified, said)
	case is:
		s.push(watch.Added, said)
	case was:
		s.push(watch.Deleted, said)
	}
}

// push queues one event.
func (s *subscription) push(t watch.EventType, o *shared) {
	key := objectOf(o.SyncStatus)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return
	}
	if i, waiting := s.pending[key]; waiting && t != watch.Bookmark {
		if s.queue[i].Type == watch.Added && t == watch.Modified {
			t = watch.Added
		}
		s.queue[i] = nil
	}
	if len(s.queue) > 2*len(s.pending)+gaps {
		s.compact()
	}
	s.queue = append(s.queue, &watch.Event{Type: t, Object: o})
	if t != watch.Bookmark {
		s.pending[key] = len(s.queue) - 1
	}
	s.rouse()
}

// compact closes the gaps that newer events have left in the queue of a watcher who takes nothing. s.mu is held.
func (s *subscription) compact() {
	s.queue = slices.DeleteFunc(s.queue, func(e *watch.Event) bool { return e == nil })
	for i, e := range s.queue {
		if e.Type != watch.Bookmark {
			s.pending[objectOf(e.Object.(*shared).SyncStatus)] = i
		}
	}
}

// rouse has the pump look at the queue.
func (s *subscription) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// bookmark tells a revision up to which everything has been sent.
func (s *subscription) bookmark(rev uint64, endOfInitial bool) {
	b := blank()
	b.ResourceVersion = formatRevision(rev)
	if endOfInitial {
		b.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	s.push(watch.Bookmark, share(b))
}

// initialDone notes that a namespace's initial events are queued, and tells whether they were the last.
func (s *subscription) initialDone(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.initial[namespace] {
		return false
	}
	delete(s.initial, namespace)
	if len(s.initial) > 0 {
		return false
	}
	s.rouse()
	return true
}

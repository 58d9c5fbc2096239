// Package store holds what has been published of each object's verdicts, and delivers changes to watchers. Every verdict
// that leaves this API server, in answer to a GET, LIST or WATCH, is published here first, in one step: the store compares
// it with the last one, assigns the revision, adds what follows from earlier verdicts, and queues an event for every
// watcher. So no watcher can miss what a reader has seen.
//
// The store knows nothing of zones or servers, and does not keep verdicts: only digests, and an outline for selectors. Who
// needs a verdict again evaluates it again.
//
// # Resource versions
//
// A revision is the time in microseconds, made strictly increasing, with the replica's number in the lowest eleven bits. An
// object's resourceVersion is the revision at which its present verdict was published first, so it changes when, and only
// when, the verdict or its evidence does. A list's is one at which nothing in the list had changed since. All pages of a list
// have that of the first one, as in kube-apiserver; but they show the present, and so it is marked: see inexact. A watch goes on
// from any revision of this process that is younger than the oldest forgotten tombstone; from every other it gets 410
// (Expired), and the client lists again.
package store

import (
	"cmp"
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/parallel"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// Bounds of what is remembered of deleted objects.
const (
	tombstoneTimeout = 5 * time.Minute
	maxTombstones    = 20000
)

// Key names one object that has a SyncStatus.
type Key = source.ObjectKey

// KeyOf is the object that a SyncStatus is about, in the namespace of the SyncStatus: for a cluster-scoped object that is the namespace
// of its instances.
func KeyOf(s *syncv1.SyncStatus) Key {
	return Key{Kind: s.ObjectRef.Kind, Namespace: s.Namespace, Name: s.ObjectRef.Name}
}

// Store is safe for concurrent use.
type Store struct {
	clock *revisionClock
	seed  maphash.Seed
	// onEvent is called for each event that a watcher receives.
	onEvent func(watch.EventType)

	mu         sync.Mutex
	namespaces map[string]map[Key]*entry
	tombstones []*tombstone // oldest first
	buried     map[Key]*tombstone
	// oldest is the revision from which on all deletions are known.
	oldest   uint64
	watchers map[Scope]map[*Watcher]struct{}
}

// New returns an empty Store. onEvent is called for each event that a watcher receives.
func New(now func() time.Time, onEvent func(watch.EventType)) *Store {
	clock := newRevisionClock(now)
	return &Store{
		clock: clock, seed: maphash.MakeSeed(), onEvent: onEvent, namespaces: map[string]map[Key]*entry{},
		buried: map[Key]*tombstone{}, oldest: clock.currentRevision(), watchers: map[Scope]map[*Watcher]struct{}{},
	}
}

// Revision is the present revision. Whoever evaluates verdicts takes it before looking at any evidence.
func (s *Store) Revision() uint64 { return s.clock.currentRevision() }

// Publish makes verdicts visible to readers and watchers, and completes them by what the store holds. evaluatedFrom is the
// Revision at which their evaluation began. A verdict that differs from one that was published meanwhile may rest on older
// evidence than that, and one about a deleted object is void: Publish does nothing with these and returns their indexes.
// Who wants them must evaluate them again. nil stands for no verdict.
func (s *Store) Publish(evaluatedFrom uint64, verdicts ...*syncv1.SyncStatus) (outdated []int) {
	digests := make([]uint64, len(verdicts))
	parallel.ForRange(len(verdicts), func(i int) {
		if verdicts[i] != nil {
			digests[i] = s.Digest(verdicts[i])
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, v := range verdicts {
		if v != nil && !s.publish(v, digests[i], evaluatedFrom) {
			outdated = append(outdated, i)
		}
	}
	return outdated
}

// publish is false if the verdict is older than what is known. s.mu is held.
func (s *Store) publish(v *syncv1.SyncStatus, digest, evaluatedFrom uint64) bool {
	key := KeyOf(v)
	e, t := s.namespaces[key.Namespace][key], s.buried[key]
	changed := e == nil || e.digest != digest || e.uid != v.ObjectRef.UID
	switch {
	case t != nil && t.uid == v.ObjectRef.UID && t.revision > evaluatedFrom,
		e == nil && s.oldest > evaluatedFrom, // It may have been deleted, and its tombstone be forgotten.
		changed && e != nil && e.confirmed > evaluatedFrom:
		return false
	}
	var was *syncv1.SyncStatus
	if e != nil && changed {
		was = e.status(key)
	}
	if e == nil || e.uid != v.ObjectRef.UID {
		e = e.successor()
		if s.namespaces[key.Namespace] == nil {
			s.namespaces[key.Namespace] = map[Key]*entry{}
		}
		s.namespaces[key.Namespace][key] = e
	}
	e.confirmed = s.clock.nextRevision()
	if changed {
		if e.revision > 0 {
			e.previous = new(e.outline)
		}
		e.digest, e.revision = digest, e.confirmed
		e.born = cmp.Or(e.born, e.revision)
	}
	e.complete(v, s.clock.now())
	e.outline = outlineOf(v, e.revision)
	if changed {
		s.notifyWatchers(key, was, v, v)
	}
	return true
}

// IsPublished compares a digest with the last verdict that was published of an object.
func (s *Store) IsPublished(key Key, digest uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.namespaces[key.Namespace][key]
	return e != nil && e.digest == digest
}

// Delete publishes the end of an object, and remembers it for a while. Another object that has its name already goes on.
func (s *Store) Delete(key Key, o metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.namespaces[key.Namespace][key]; e != nil && e.uid == o.GetUID() {
		s.end(key, e)
		return
	}
	s.bury(&tombstone{Key: key, outline: outline{
		uid: o.GetUID(), labels: subject.LabelsOf(o), created: o.GetCreationTimestamp().Unix(), generation: o.GetGeneration(),
	}})
}

// end publishes the end of an object that has an entry. s.mu is held.
func (s *Store) end(key Key, e *entry) {
	if delete(s.namespaces[key.Namespace], key); len(s.namespaces[key.Namespace]) == 0 {
		delete(s.namespaces, key.Namespace)
	}
	t := &tombstone{Key: key, outline: e.outline, last: *e, published: true}
	s.bury(t)
	last := t.status(key)
	s.notifyWatchers(key, last, nil, last)
}

// bury remembers the end of an object. s.mu is held.
func (s *Store) bury(t *tombstone) {
	t.revision = s.clock.nextRevision()
	s.tombstones = append(s.tombstones, t)
	s.buried[t.Key] = t
	s.expireTombstones()
}

// EndUnlisted publishes the end of what a list lacks because it does not exist any more: of objects in its scope that match a
// selector, were published at a revision or before, and are not among its verdicts. The list knows of their end before their
// event has come. uidOf returns the UID of an object that exists, else "".
func (s *Store) EndUnlisted(rev uint64, scope Scope, selector Selector, verdicts []*syncv1.SyncStatus, uidOf func(Key) types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := 0
	for range s.entriesIn(scope) {
		entries++
	}
	if entries == len(verdicts) {
		return
	}
	listed := make(map[Key]struct{}, len(verdicts))
	for _, v := range verdicts {
		listed[KeyOf(v)] = struct{}{}
	}
	for key, e := range s.entriesIn(scope) {
		// Nearly all exist: what costs most comes last.
		if _, is := listed[key]; !is && e.revision <= rev && uidOf(key) != e.uid && selector.Matches(e.status(key)) {
			s.end(key, e)
		}
	}
}

// expireTombstones forgets objects that were deleted long ago. s.mu is held.
func (s *Store) expireTombstones() {
	for len(s.tombstones) > 0 {
		t := s.tombstones[0]
		if len(s.tombstones) <= maxTombstones && s.clock.now().Sub(timeOf(t.revision)) <= tombstoneTimeout {
			return
		}
		s.oldest = max(s.oldest, t.revision)
		s.tombstones = s.tombstones[1:]
		if s.buried[t.Key] == t {
			delete(s.buried, t.Key)
		}
	}
}

// deletedSince yields tombstones after a revision, the newest first. s.mu is held.
func (s *Store) deletedSince(rev uint64) func(yield func(*tombstone) bool) {
	return func(yield func(*tombstone) bool) {
		for _, t := range slices.Backward(s.tombstones) {
			if t.revision <= rev || !yield(t) {
				return
			}
		}
	}
}

// notifyWatchers queues an event for all watchers of an object: was and is are the states before and after, nil where there is none;
// last is what they receive. s.mu is held, which keeps every queue in the order of revisions.
func (s *Store) notifyWatchers(key Key, was, is, last *syncv1.SyncStatus) {
	var object *Object
	for _, scope := range []Scope{{}, {Namespace: key.Namespace}, {Namespace: key.Namespace, Object: key}} {
		for w := range s.watchers[scope] {
			if kind := w.eventFor(was, is); kind != "" {
				if object == nil {
					object = newObject(last)
				}
				w.pushEvent(kind, object)
			}
		}
	}
}

// entriesIn yields the entries of a scope. s.mu is held.
func (s *Store) entriesIn(scope Scope) func(yield func(Key, *entry) bool) {
	return func(yield func(Key, *entry) bool) {
		switch {
		case scope.Object != Key{}:
			if e := s.namespaces[scope.Namespace][scope.Object]; e != nil {
				yield(scope.Object, e)
			}
		case scope.Namespace != "":
			maps.All(s.namespaces[scope.Namespace])(yield)
		default:
			for _, entries := range s.namespaces {
				for key, e := range entries {
					if !yield(key, e) {
						return
					}
				}
			}
		}
	}
}

// Watches counts open watches.
func (s *Store) Watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, watchers := range s.watchers {
		n += len(watchers)
	}
	return n
}

// EndWatches ends every watch, one after the other within the given time, so that their clients do not all come back in
// one moment.
func (s *Store) EndWatches(ctx context.Context, within time.Duration) {
	var all []*Watcher
	s.mu.Lock()
	for _, watchers := range s.watchers {
		all = slices.AppendSeq(all, maps.Keys(watchers))
	}
	s.mu.Unlock()
	for i, w := range all {
		if i > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(within / time.Duration(len(all))):
			}
		}
		w.endAfterQueue()
	}
}
